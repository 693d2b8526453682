package config

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// The scraper's parser stops at the first mistake in a job. To report all of them at once, remove the wrong part and
// check the rest again.

// maxPasses bounds how often one scrape configuration is checked.
const maxPasses = 20

// anyGlobal replaces a global that is wrong, or whose interval must not count. Its interval is so long that no timeout of
// a job exceeds it.
const anyGlobal = `{scrape_interval: 1y, scrape_timeout: 10s}`

// checkEntry returns the mistakes of one scrape configuration, in order.
type checkEntry func(text scrapeText, global string) []scrapeMistake

// furtherMistakes reports the other mistakes of an entry whose first mistakes are known.
func (d *document) furtherMistakes(src scrapeSource, entry int, found []scrapeMistake, check checkEntry) {
	one := src.Entries[entry]
	rest := newRemains(one.node)
	seen := map[scrapeMistake]bool{}
	for range maxPasses {
		progress := false
		for _, m := range found {
			m.Entry = entry
			if seen[m] {
				continue
			}
			seen[m] = true
			at := d.scrapeMistake(src, m)
			progress = rest.cut(strings.TrimPrefix(at, one.entry.path)) || progress
		}
		if rest.named() {
			progress = true
			if m := (scrapeMistake{Entry: entry, Text: "job_name is empty"}); !seen[m] {
				seen[m] = true
				d.scrapeMistake(src, m)
			}
		}
		if !progress || len(d.errs) >= maxMistakes {
			return
		}
		global := src.Global
		if rest.timeless {
			global = anyGlobal
		}
		one.Text = one.entry.in.flowText(rest.tree())
		found = check(one, global)
	}
}

// remains is the rest of a scrape configuration after its known mistakes were removed.
type remains struct {
	entry     *yaml.Node // never changed
	gone      map[*yaml.Node]bool
	relabels  bool // it had relabel_configs: without them its targets would be checked otherwise
	timeless  bool // its scrape_interval was taken out
	nameGiven bool // it has a job_name, possibly an invented one
	nameMade  bool
}

func newRemains(n *yaml.Node) *remains {
	return &remains{entry: n, gone: map[*yaml.Node]bool{}, relabels: keyIndex(n.Content, "relabel_configs") >= 0}
}

var pathStep = regexp.MustCompile(`[^.\[\]]+|\[\d+\]`)

// cut removes the value at a path: the innermost list entry on it, or else the top-level key. It reports whether it was
// there.
func (r *remains) cut(path string) bool {
	steps := pathStep.FindAllString(path, -1)
	if len(steps) == 0 {
		return false
	}
	n, inner := r.entry, (*yaml.Node)(nil)
	for _, step := range steps {
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		index, err := strconv.Atoi(strings.Trim(step, "[]"))
		i := keyIndex(n.Content, step)
		switch {
		case n.Kind == yaml.SequenceNode && err == nil && index < len(n.Content):
			n = n.Content[index]
			inner = n
		case n.Kind == yaml.MappingNode && i >= 0:
			if inner == nil {
				inner = n.Content[i] // remove a top-level key with its value
			}
			n = n.Content[i+1]
		default:
			return false
		}
	}
	if inner == nil || r.gone[inner] {
		return false
	}
	r.gone[inner] = true
	r.timeless = r.timeless || steps[0] == "scrape_interval"
	return true
}

// named gives a job without a name one, and reports whether it did.
func (r *remains) named() bool {
	if r.nameGiven {
		return false
	}
	r.nameGiven = true
	i := keyIndex(r.entry.Content, "job_name")
	if i >= 0 && r.entry.Content[i+1].Value != "" && !r.gone[r.entry.Content[i]] {
		return false
	}
	if i >= 0 {
		r.gone[r.entry.Content[i]] = true
	}
	r.nameMade = true
	return true
}

// tree returns the rest as a tree.
func (r *remains) tree() *yaml.Node {
	rest := *r.prune(r.entry)
	if i := keyIndex(rest.Content, "relabel_configs"); r.relabels && (i < 0 || len(rest.Content[i+1].Content) == 0) {
		if i >= 0 {
			rest.Content = slices.Delete(rest.Content, i, i+2)
		}
		rule := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{word("action"), word("labeldrop"), word("regex"), word("none")}}
		rest.Content = append([]*yaml.Node{word("relabel_configs"), {Kind: yaml.SequenceNode, Content: []*yaml.Node{rule}}}, rest.Content...)
	}
	if r.nameMade {
		rest.Content = append([]*yaml.Node{word("job_name"), word("without a name")}, rest.Content...)
	}
	return &rest
}

// prune returns a copy of n without the removed parts.
func (r *remains) prune(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.ScalarNode {
		return n
	}
	less := *n
	less.Content = nil
	for i := 0; i < len(n.Content); i++ {
		child := n.Content[i]
		switch {
		case r.gone[child] && n.Kind == yaml.MappingNode:
			i++ // its value
		case !r.gone[child]:
			less.Content = append(less.Content, r.prune(child))
		}
	}
	if n.Kind == yaml.AliasNode {
		less.Alias = r.prune(n.Alias)
	}
	return &less
}

func word(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }
