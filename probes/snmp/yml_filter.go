package snmp

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// staticFilter restricts targets to the listed rows, in the generator's vocabulary. The generator
// expands it to single objects; some people write it into an snmp.yml by hand.
type staticFilter struct{ targets, indices []string }

// readFilters reads a list of dynamic filters, the generator's output, or a mapping of static and
// dynamic ones, the generator's input.
func readFilters(r *ymlReader, n *yaml.Node, m *ymlModule) {
	if r.follow(n).Kind != yaml.MappingNode {
		readDynamic(r, n, m)
		return
	}
	r.mapping(n, "filters",
		field{"dynamic", func(n *yaml.Node) { readDynamic(r, n, m) }},
		field{"static", func(n *yaml.Node) {
			r.list(n, "filters.static", func(item *yaml.Node) {
				var f staticFilter
				r.mapping(item, "a static filter",
					field{"targets", func(n *yaml.Node) { f.targets = r.oids(n, "targets") }},
					field{"indices", func(n *yaml.Node) { f.indices = readIndices(r, n) }},
				)
				m.static = append(m.static, f)
			})
		}},
	)
}

func readDynamic(r *ymlReader, n *yaml.Node, m *ymlModule) {
	r.list(n, "filters", func(item *yaml.Node) {
		var f filter
		r.mapping(item, "a filter",
			field{"oid", func(n *yaml.Node) { f.oid = r.oid(n, "oid") }},
			field{"targets", func(n *yaml.Node) { f.targets = r.oids(n, "targets") }},
			field{"values", func(n *yaml.Node) {
				r.list(n, "values", func(v *yaml.Node) {
					if re := readRegex(r, v, "%s"); re != nil {
						f.values = append(f.values, re)
					}
				})
			}},
		)
		if f.oid == "" {
			r.fail(item, "write oid: and the column that decides", "a filter needs an oid")
			return
		}
		m.filters = append(m.filters, f)
	})
}

// readIndices reads rows: the numbers of an OID below its column.
func readIndices(r *ymlReader, n *yaml.Node) (all []string) {
	r.list(n, "indices", func(item *yaml.Node) {
		s, ok := r.text(item, "an index")
		if !ok {
			return
		}
		o, err := parseOID(s)
		if err != nil {
			r.fail(item, "write it in numbers, such as 1 or 1.2", "an index is %s, not numbers", short(s))
			return
		}
		all = append(all, o.String())
	})
	return all
}

// static replaces the targets of static filters with their rows.
func static(m *ymlModule) {
	for _, f := range m.static {
		for _, t := range f.targets {
			m.walk = slices.DeleteFunc(m.walk, func(w string) bool { return w == t || strings.HasPrefix(w, t+".") })
			for _, i := range f.indices {
				m.get = append(m.get, t+"."+i)
			}
		}
	}
	m.static = nil
}
