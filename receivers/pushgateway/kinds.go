package pushgateway

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
)

// kinds counts, for the name of each family, how many groups have it with each type.
type kinds map[string]map[dto.MetricType]int

// add adds n to the counts of the families of g, which may be nil; n may be negative.
func (k kinds) add(g *group, n int) {
	if g == nil {
		return
	}
	for name, f := range g.families {
		of := k[name]
		if of == nil {
			of = map[dto.MetricType]int{}
			k[name] = of
		}
		if of[f.kind] += n; of[f.kind] == 0 {
			delete(of, f.kind)
		}
		if len(of) == 0 {
			delete(k, name)
		}
	}
}

// conflict returns which family of next conflicts with the existing ones, "" if none does. old is the group that next
// replaces, or nil; families that it already has are not checked again. The rules are those of the Pushgateway: a name
// has one type in all groups, and no family has the name of the sum, count or buckets of a histogram or a summary.
func (k kinds) conflict(old, next *group) string {
	for _, name := range slices.Sorted(maps.Keys(next.families)) {
		mine := next.families[name].kind
		if has(old, name) && old.families[name].kind == mine {
			continue
		}
		for other := range k.elsewhere(name, old) {
			if other != mine {
				return fmt.Sprintf("%s is a %s in another group, and a %s here", name, word(other), word(mine))
			}
		}
		for _, suffix := range partsOf(mine) {
			if part := name + suffix; has(next, part) || len(k.elsewhere(part, old)) > 0 {
				return fmt.Sprintf("%s is a %s, and there is a family %s", name, word(mine), part)
			}
		}
		for _, suffix := range partsOf(dto.MetricType_HISTOGRAM) {
			whole, ok := strings.CutSuffix(name, suffix)
			if !ok {
				continue
			}
			isWhole := func(kind dto.MetricType) bool { return slices.Contains(partsOf(kind), suffix) }
			if has(next, whole) && isWhole(next.families[whole].kind) || slices.ContainsFunc(slices.Collect(maps.Keys(k.elsewhere(whole, old))), isWhole) {
				return fmt.Sprintf("%s is a histogram or a summary, and there is a family %s", whole, name)
			}
		}
	}
	return ""
}

// elsewhere returns the types that a family has in groups other than old.
func (k kinds) elsewhere(name string, old *group) map[dto.MetricType]int {
	all := k[name]
	if !has(old, name) {
		return all
	}
	rest := maps.Clone(all)
	kind := old.families[name].kind
	if rest[kind]--; rest[kind] <= 0 {
		delete(rest, kind)
	}
	return rest
}

func has(g *group, name string) bool {
	if g == nil {
		return false
	}
	_, ok := g.families[name]
	return ok
}

// partsOf returns the suffixes of the series of a family with that type.
func partsOf(kind dto.MetricType) []string {
	switch kind {
	case dto.MetricType_SUMMARY:
		return []string{"_count", "_sum"}
	case dto.MetricType_HISTOGRAM, dto.MetricType_GAUGE_HISTOGRAM:
		return []string{"_count", "_sum", "_bucket"}
	}
	return nil
}

func word(kind dto.MetricType) string { return strings.ToLower(kind.String()) }
