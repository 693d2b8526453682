package snmp

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// metricTypes are the types allowed for a metric of a file, and for lookups.
var metricTypes = []metricType{
	typeGauge, typeCounter, typeFloat, typeDouble, typeDateAndTime, typeParseDateAndTime, typeNTPTimeStamp,
	typeEnumAsInfo, typeEnumAsStateSet, typeBits, typeOctetString, typeDisplayString, typePhysAddress48,
	typeInetAddress, typeInetAddressMissingSize, typeInetAddressIPv4, typeInetAddressIPv6, typeLldpPortID,
}

// indexTypes are the types allowed for an index of a file.
var indexTypes = []metricType{
	typeGauge, typeCounter, "Integer", typeInteger32, typePhysAddress48, typeOctetString, typeDisplayString,
	typeInetAddressIPv4, typeInetAddressIPv6, typeInetAddress, typeInetAddressMissingSize, typeLldpPortID, typeEnumAsInfo,
}

// readModule reads the module under the key k.
func readModule(r *ymlReader, k, v *yaml.Node, old bool) *ymlModule {
	m := &ymlModule{place: Note{File: r.file, Line: k.Line, Column: k.Column}}
	what := "module " + short(k.Value)
	var auth, version *yaml.Node
	known := []field{
		{"walk", func(n *yaml.Node) { m.walk = r.oids(n, "walk of "+what) }},
		{"get", func(n *yaml.Node) { m.get = r.oids(n, "get of "+what) }},
		{"metrics", func(n *yaml.Node) {
			r.list(n, "metrics of "+what, func(item *yaml.Node) { m.metrics = append(m.metrics, readMetric(r, item)) })
		}},
		{"filters", func(n *yaml.Node) { readFilters(r, n, m) }},
		{"max_repetitions", func(n *yaml.Node) {
			// A device answers a GETBULK for too many variables in part: RFC 3416 section 4.2.3.
			m.params.maxRepetitions = min(maxRepetitions, r.integer(n, "max_repetitions", 0, 1<<31-1))
		}},
		{"retries", func(n *yaml.Node) { m.params.retries = new(r.integer(n, "retries", 0, 100)) }},
		{"timeout", func(n *yaml.Node) { m.params.timeout = r.duration(n, "timeout") }},
		{"use_unconnected_udp_socket", func(n *yaml.Node) { m.params.unconnected = r.flag(n, "use_unconnected_udp_socket") }},
		{"allow_nonincreasing_oids", func(n *yaml.Node) { m.params.nonIncreasing = r.flag(n, "allow_nonincreasing_oids") }},
	}
	if old {
		known = append(known, field{"auth", func(n *yaml.Node) { auth = n }}, field{"version", func(n *yaml.Node) { version = n }})
	}
	r.mapping(v, what, known...)
	if auth != nil || version != nil {
		if auth == nil {
			auth = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: version.Line, Column: version.Column}
		}
		m.auth = readAuth(r, k, auth, version)
	}
	static(m)
	return m
}

// readMetric reads one item of metrics. A broken one gets an OID that matches nothing, as its
// mistake makes the file fail.
func readMetric(r *ymlReader, n *yaml.Node) metric {
	m := metric{oid: "0.0"}
	var typ *yaml.Node
	label := "a metric"
	r.mapping(n, label,
		field{"name", func(n *yaml.Node) { m.name = readName(r, n, "the name of a metric") }},
		field{"oid", func(n *yaml.Node) { m.oid = r.oid(n, "oid") }},
		field{"type", func(n *yaml.Node) { typ = n; m.typ = readType(r, n, metricTypes) }},
		field{"help", func(n *yaml.Node) { m.help, _ = r.text(n, "help") }},
		field{"indexes", func(n *yaml.Node) {
			r.list(n, "indexes", func(item *yaml.Node) { m.indexes = append(m.indexes, readIndex(r, item)) })
		}},
		field{"lookups", func(n *yaml.Node) {
			r.list(n, "lookups", func(item *yaml.Node) { m.lookups = append(m.lookups, readLookup(r, item)) })
		}},
		field{"regex_extracts", func(n *yaml.Node) { m.extracts = readExtracts(r, n) }},
		field{"datetime_pattern", func(n *yaml.Node) { m.timePattern, _ = r.text(n, "datetime_pattern") }},
		field{"enum_values", func(n *yaml.Node) { m.enumValues = readEnum(r, n) }},
		field{"offset", func(n *yaml.Node) { m.offset = r.number(n, "offset") }},
		field{"scale", func(n *yaml.Node) { m.scale = r.number(n, "scale") }},
		field{"display_hint", func(n *yaml.Node) { m.displayHint, _ = r.text(n, "display_hint") }},
	)
	if m.name == "" && len(r.broken) == 0 {
		r.fail(n, "write name: and the name of the series", "the metric has no name")
	}
	if m.oid == "0.0" && len(r.broken) == 0 {
		r.fail(n, "write oid: and its OID in numbers", "the metric %s has no oid", short(m.name))
	}
	if typ == nil {
		m.typ = readType(r, n, metricTypes)
	}
	if m.oid == "" {
		m.oid = "0.0"
	}
	return m
}

// readType reads one of the known types; n may be the mapping that lacks a type.
func readType(r *ymlReader, n *yaml.Node, known []metricType) metricType {
	s := ""
	if n.Kind != yaml.MappingNode {
		var ok bool
		if s, ok = r.text(n, "type"); !ok {
			return typeGauge
		}
	}
	if t := metricType(s); slices.Contains(known, t) {
		return t
	}
	names := make([]string, len(known))
	for i, t := range known {
		names[i] = string(t)
	}
	r.fail(n, "write one of "+strings.Join(names, ", "), "the type %s is not known here", short(s))
	return typeGauge
}

// readName reads a name of a metric or label.
func readName(r *ymlReader, n *yaml.Node, what string) string {
	s, ok := r.text(n, what)
	if ok && (s == "" || strings.HasPrefix(s, "__") || !utf8.ValidString(s)) {
		r.fail(n, "write a name that does not begin with __", "%s is %s", what, short(s))
		return "broken"
	}
	return s
}

func readIndex(r *ymlReader, n *yaml.Node) index {
	x := index{typ: "none"}
	r.mapping(n, "an index",
		field{"labelname", func(n *yaml.Node) { x.labelname = readName(r, n, "labelname") }},
		field{"type", func(n *yaml.Node) { x.typ = readType(r, n, indexTypes) }},
		field{"fixed_size", func(n *yaml.Node) { x.fixedSize = r.integer(n, "fixed_size", 0, maxArcs) }},
		field{"implied", func(n *yaml.Node) { x.implied = r.flag(n, "implied") }},
		field{"enum_values", func(n *yaml.Node) { x.enumValues = readEnum(r, n) }},
	)
	if x.labelname == "" || x.typ == "none" {
		r.fail(n, "write both", "an index needs labelname and type")
	}
	return x
}

func readLookup(r *ymlReader, n *yaml.Node) lookup {
	var l lookup
	r.mapping(n, "a lookup",
		field{"labels", func(n *yaml.Node) {
			r.list(n, "labels", func(item *yaml.Node) {
				s, _ := r.text(item, "a label")
				l.labels = append(l.labels, s)
			})
		}},
		field{"labelname", func(n *yaml.Node) { l.labelname = readName(r, n, "labelname") }},
		field{"oid", func(n *yaml.Node) { l.oid = r.oid(n, "oid") }},
		field{"type", func(n *yaml.Node) { l.typ = readType(r, n, append([]metricType{""}, metricTypes...)) }},
		field{"enum_values", func(n *yaml.Node) { l.enumValues = readEnum(r, n) }},
		field{"display_hint", func(n *yaml.Node) { l.displayHint, _ = r.text(n, "display_hint") }},
	)
	switch {
	case l.labelname == "":
		r.fail(n, "write labelname: and the label to set", "a lookup needs a labelname")
	case len(l.labels) > 0 && l.oid == "":
		r.fail(n, "write oid: and the column to look in; a lookup without labels removes its label", "a lookup with labels needs an oid")
	}
	return l
}

func readEnum(r *ymlReader, n *yaml.Node) map[int]string {
	enum := map[int]string{}
	r.entries(n, "enum_values", func(k, v *yaml.Node) {
		i, err := strconv.ParseInt(k.Value, 0, 64)
		if err != nil {
			r.fail(k, "write number: name", "a key of enum_values is %s, not a number", short(k.Value))
			return
		}
		enum[int(i)], _ = r.text(v, "a name of enum_values")
	})
	return enum
}

func readExtracts(r *ymlReader, n *yaml.Node) (all []extract) {
	r.entries(n, "regex_extracts", func(k, v *yaml.Node) {
		x := extract{suffix: k.Value}
		r.list(v, "regex_extracts."+k.Value, func(item *yaml.Node) {
			rule := extractRule{value: "$1"}
			r.mapping(item, "a rule of regex_extracts",
				field{"regex", func(n *yaml.Node) { rule.regex = readRegex(r, n, "^(?:%s)$") }},
				field{"value", func(n *yaml.Node) { rule.value, _ = r.text(n, "value") }},
			)
			if rule.regex != nil {
				x.rules = append(x.rules, rule)
			}
		})
		all = append(all, x)
	})
	return all
}

// maxRegex bounds a regular expression, in bytes.
const maxRegex = 16 << 10

// readRegex compiles an expression inserted into frame. It returns nil after a mistake.
func readRegex(r *ymlReader, n *yaml.Node, frame string) *regexp.Regexp {
	s, ok := r.text(n, "a regular expression")
	if !ok {
		return nil
	}
	if len(s) > maxRegex {
		r.fail(n, "write several short ones", "the regular expression is longer than %d bytes", maxRegex)
		return nil
	}
	re, err := regexp.Compile(fmt.Sprintf(frame, s))
	if err != nil {
		r.fail(n, "write it in RE2's syntax", "the regular expression cannot be used: %v", err)
		return nil
	}
	return re
}
