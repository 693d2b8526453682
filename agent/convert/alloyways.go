package convert

import (
	"slices"

	"go.yaml.in/yaml/v4"
)

// chain is a way from a source to a receiver: the rules of the components on it.
type chain struct {
	rules    []placed
	receiver string
}

// chains returns the ways that a list of receivers leads to.
func (a *alloy) chains(forward *yaml.Node, where string, depth int) (all []chain) {
	for i, to := range items(forward) {
		if v, path := a.component(to.Value, "prometheus.remote_write", "receiver"); v != nil {
			a.take(to)
			all = append(all, chain{receiver: path})
			continue
		}
		v, path := a.component(to.Value, "prometheus.relabel", "receiver")
		if v == nil || depth > maxDepth {
			a.note(to, at(where, i), "leads to no prometheus.relabel or prometheus.remote_write")
			continue
		}
		a.take(to)
		rules := a.placedRules(v, path, "rule")
		for _, next := range a.chains(get(v, "forward_to"), path+".forward_to", depth+1) {
			all = append(all, chain{append(slices.Clone(rules), next.rules...), next.receiver})
		}
	}
	return all
}

// equal reports whether two ways have the same rules.
func (c chain) equal(other chain) bool {
	return slices.EqualFunc(c.rules, other.rules, func(x, y placed) bool { return same(x.rule, y.rule) })
}

// findWays finds where the rules between sources and receivers belong. Where all ways of each source have the same rules, these are the
// source's. Else, where all ways to each receiver have the same, these are the receiver's.
func (a *alloy) findWays() {
	into := map[string][]placed{}
	first := map[string]chain{}
	bySource, byTarget := true, true
	a.components("prometheus.scrape", func(path string, v *yaml.Node) {
		all := a.chains(get(v, "forward_to"), path+".forward_to", 0)
		for _, one := range all {
			bySource = bySource && one.equal(all[0])
			if before, ok := first[one.receiver]; ok {
				byTarget = byTarget && one.equal(before)
			}
			first[one.receiver], into[one.receiver] = one, one.rules
		}
	})
	if !bySource && byTarget {
		a.ofTarget = into
	}
}

// forwarded returns the rules of a source, and notes what differs here.
func (a *alloy) forwarded(v *yaml.Node, path string) []*yaml.Node {
	where := path + ".forward_to"
	all := a.chains(get(v, "forward_to"), where, 0)
	var reached []string
	differ := false
	for _, one := range all {
		reached = append(reached, one.receiver)
		differ = differ || !one.equal(all[0])
	}
	if i := slices.IndexFunc(a.receivers, func(one string) bool { return !slices.Contains(reached, one) }); i >= 0 {
		a.remark(keyOf(v, "forward_to"), where, "does not lead to %s there: here every target gets all samples; narrow that with write_relabel_configs", a.receivers[i])
	}
	switch {
	case len(all) == 0 || a.ofTarget != nil:
		return nil
	case !differ:
		return a.expandable(all[0].rules)
	}
	for _, one := range all {
		for _, r := range one.rules {
			a.note(r.rule, r.path, "is left out, because %s has different rules for its receivers: write it as write_relabel_configs of %s", path, one.receiver)
		}
	}
	return nil
}
