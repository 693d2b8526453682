package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v4"

	"hwsagent/internal/files"
	"hwsagent/receivers/scrape"
)

// ScrapeConfig is one entry of scrape_configs in force, for people. The scraper defines its keys.
type ScrapeConfig struct{ shown *yaml.Node }

// MarshalYAML writes the entry without its secrets.
func (c ScrapeConfig) MarshalYAML() (any, error) { return c.shown, nil }

// scrapeKinds are the keys that say where a job's targets come from.
var scrapeKinds = []string{"static_configs", "file_sd_configs", "http_sd_configs", "dns_sd_configs", "kubernetes_sd_configs"}

// scrapeEntry is one scrape configuration, with the file that holds it.
type scrapeEntry struct {
	in   *document
	path string // in that file
	dir  string
}

// scrapeEntries returns every scrape configuration: those of d, and those in the files that scrape_config_files names,
// which it reads. It adds mistakes in such a file to d.
func (c *Config) scrapeEntries(d *document, x *expander) []scrapeEntry {
	entries := entriesOf(d, c.Dir)
	for i, pattern := range c.ScrapeConfigFiles {
		at := fmt.Sprintf("scrape_config_files[%d]", i)
		if !filePattern.MatchString(pattern) {
			d.errorAt(at, fmt.Sprintf("%q is not a valid file pattern", pattern), "a * may stand in the last part only")
			continue
		}
		path := pattern
		if !filepath.IsAbs(path) {
			path = filepath.Join(c.Dir, path)
		}
		names, err := files.Match(path)
		if err != nil {
			d.errorAt(at, err.Error(), "")
			continue
		}
		if len(names) == 0 {
			d.warnAt(at, fmt.Sprintf("no file matches %q", pattern), "the agent looks for files at a start and at a reload")
		}
		for _, name := range names {
			entries = append(entries, d.scrapeFile(at, name, x)...)
		}
	}
	return entries
}

// filePattern is Prometheus' own pattern for such paths.
var filePattern = regexp.MustCompile(`^[^*]*(\*[^/]*)?$`)

// scrapeFile reads one file named by the value at at.
func (d *document) scrapeFile(at, name string, x *expander) []scrapeEntry {
	text, err := readAtMost(name, maxBytes)
	if err != nil {
		d.errorAt(at, err.Error(), "")
		return nil
	}
	inner, err := parse(name, text)
	d.inner = append(d.inner, inner)
	if err != nil || inner.root == nil {
		return nil
	}
	own := *x
	own.dir = filepath.Dir(name)
	own.expand(inner)
	for i := 0; i+1 < len(inner.root.Content); i += 2 {
		if key := inner.root.Content[i]; key.Value != "scrape_configs" {
			inner.add(key.Line, key.Column, "", fmt.Sprintf("unknown key %q", key.Value), "such a file has scrape_configs: and nothing else")
		}
	}
	return entriesOf(inner, own.dir)
}

func entriesOf(d *document, dir string) []scrapeEntry {
	list := d.value("scrape_configs")
	if list == nil || list.ShortTag() == "!!null" {
		return nil
	}
	if list.Kind != yaml.SequenceNode {
		d.errorAt("scrape_configs", "want a list, got "+d.got("scrape_configs", list), `begin each entry with "- "`)
		return nil
	}
	entries := make([]scrapeEntry, len(list.Content))
	for i := range list.Content {
		entries[i] = scrapeEntry{d, fmt.Sprintf("scrape_configs[%d]", i), dir}
	}
	return entries
}

// decodeScrape checks all scrape configurations and makes jobs from them.
func (c *Config) decodeScrape(d *document, x *expander) {
	entries := c.scrapeEntries(d, x)
	jobs := map[string]scrapeEntry{}
	parsed, err := scrape.NewJobs(c.Global.ScrapeInterval, c.Global.ScrapeTimeout, c.Global.Scrape)
	if err != nil && !d.wrongBelow("global") {
		d.scrapeMistake("global", scrape.Mistake{Text: err.Error()})
	}
	if err != nil || d.wrongBelow("global") { // otherwise every job would repeat the mistake
		parsed, _ = scrape.NewJobs(anyInterval, 0, scrape.Global{})
	}
	c.scrape = &Jobs{Jobs: parsed, limits: map[string]int{}}
	for _, e := range entries {
		n := e.in.value(e.path)
		if n.Kind != yaml.MappingNode {
			e.in.errorAt(e.path, "want a mapping (lines of key: value), got "+e.in.got(e.path, n), "a job needs at least job_name and static_configs")
			continue
		}
		if name := e.in.value(e.path + ".job_name"); name != nil && name.Kind == yaml.ScalarNode {
			if first, taken := jobs[name.Value]; taken {
				where := first.in.cite(first.path)
				if where == first.path {
					where += " in " + first.in.name
				}
				e.in.errorAt(e.path+".job_name", fmt.Sprintf("the name %q is already used by %s", name.Value, where), "give each job a name of its own")
			}
			jobs[name.Value] = e
		}
		theirs, own := e.split(n)
		e.add(parsed, theirs)
		if names := parsed.Names(); len(names) > 0 {
			c.scrape.limits[names[len(names)-1]] = own.MaxSeries
		}
	}
	c.hideGivenScrape(entries)
	c.scrape.Hidden = c.scrapeHidden
	if err := c.showScrape(d); err != nil {
		d.errorAt("scrape_configs", err.Error(), "")
	}
}

// anyInterval is so long that no timeout of a job exceeds it.
const anyInterval = model.Duration(365 * 24 * time.Hour)

// add decodes and checks one entry, and reports its mistakes.
func (e scrapeEntry) add(jobs *scrape.Jobs, n *yaml.Node) {
	mistakes, err := jobs.Add(n, e.dir)
	e.in.entry(e.path, err)
	has := func(key string) bool {
		v := e.in.value(e.path + "." + key)
		return v != nil && (v.Value != "" || len(v.Content) > 0)
	}
	for _, m := range mistakes {
		switch {
		case err == nil:
		case m.Key == "scrape_timeout", m.Text == "job_name is empty" && has("job_name"), strings.HasPrefix(m.Key, "static_configs") && has("relabel_configs"):
			continue // it may follow from a mistake that is known
		}
		e.in.scrapeMistake(e.path, m)
	}
}

// scrapeMistake reports one mistake of the scraper in the mapping at path.
func (d *document) scrapeMistake(path string, m scrape.Mistake) {
	switch at := path + "." + m.Key; {
	case m.Key == "":
		at, line, column := d.keyNamedFirst(path, m.Text)
		d.add(line, column, at, m.Text, "")
	case strings.HasSuffix(m.Key, "]"):
		d.errorAt(at, m.Text, "")
	default:
		d.errorAtKey(at, m.Text, "")
	}
}

// showScrape prepares the jobs for showing the configuration in force.
func (c *Config) showScrape(d *document) error {
	var list yaml.Node
	if err := list.Encode(c.scrape.Jobs); err != nil {
		return fmt.Errorf("write scrape_configs: %w", err)
	}
	for i, n := range list.Content {
		maskTree(d, "scrape_configs[0]", n)
		cutTree(c.scrapeHidden, n)
		if limit, _ := c.scrape.MaxSeries(c.scrape.Names()[i]); limit > 0 {
			var own yaml.Node
			if err := own.Encode(map[string]scrapeOwn{"hwsagent": {limit}}); err != nil {
				return fmt.Errorf("write scrape_configs: %w", err)
			}
			n.Content = append(n.Content, own.Content...)
		}
		c.ScrapeConfigs = append(c.ScrapeConfigs, ScrapeConfig{n})
	}
	return nil
}

// scrapeOwn holds the agent's own settings in an entry, below the key hwsagent.
type scrapeOwn struct {
	MaxSeries int `yaml:"max_series"` // that the job may have at a time; 0: no limit
}

// split separates Prometheus' settings in the entry from the agent's own. Unsupported kinds of discovery are mistakes,
// and part of neither.
func (e scrapeEntry) split(n *yaml.Node) (*yaml.Node, scrapeOwn) {
	known := *n
	known.Content = nil
	var own scrapeOwn
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Value == "hwsagent" {
			e.in.addLoadErrors(n.Content[i+1].Load(&own, yaml.WithKnownFields()))
			if own.MaxSeries < 0 {
				e.in.errorAt(e.path+".hwsagent.max_series", "must not be negative", "0 stands for no limit")
			}
			continue
		}
		kind, discovers := strings.CutSuffix(key.Value, "_sd_configs")
		if discovers && !slices.Contains(scrapeKinds, key.Value) {
			e.in.add(key.Line, key.Column, e.path, fmt.Sprintf("discovery by %s is not built into this agent", kind),
				"there are "+strings.Join(scrapeKinds, ", ")+": have its targets written to a file, or answered over HTTP")
			continue
		}
		known.Content = append(known.Content, n.Content[i], n.Content[i+1])
	}
	return &known, own
}

// allFailed returns the mistakes found so far in d, and in the files that it names, as one error, or nil.
func (d *document) allFailed() error {
	var all []Error
	for _, one := range append([]*document{d}, d.inner...) {
		var many *Errors
		if errors.As(one.failed(), &many) {
			all = append(all, many.Errors...)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return &Errors{Errors: all}
}

// wrongBelow reports whether a mistake is known at path or below it.
func (d *document) wrongBelow(path string) bool {
	return slices.ContainsFunc(d.errs, func(e Error) bool {
		return e.Path == path || strings.HasPrefix(e.Path, path+".")
	})
}

// ScrapeJobs returns the scrape jobs of all files.
func (c *Config) ScrapeJobs() *Jobs { return c.scrape }

// keyNamedFirst returns the first key of path, or below its keys, that a text such as "scrape timeout greater than
// scrape interval" names; path itself if it names none.
func (d *document) keyNamedFirst(path, text string) (at string, line, column int) {
	words := "_" + notInKeys.ReplaceAllString(strings.ReplaceAll(text, " ", "_"), "_") + "_"
	for _, deep := range []bool{false, true} {
		var best scrapeKey
		first := len(words)
		for p, k := range d.keys {
			if !strings.HasPrefix(p, path+".") || deep == (holder(p, k.Value) == path) {
				continue
			}
			i := strings.Index(words, k.Value)
			if deep {
				i = strings.Index(words, "_"+k.Value+"_")
			}
			if i >= 0 && (i < first || i == first && p < best.path) {
				first, best = i, scrapeKey{p, k.Line, k.Column}
			}
		}
		if best.path != "" {
			return best.path, best.line, best.column
		}
	}
	line, column = d.placeOf(path)
	return path, line, column
}

// scrapeKey is a key in a document, and where it begins.
type scrapeKey struct {
	path         string
	line, column int
}

// notInKeys are the characters that no key has.
var notInKeys = regexp.MustCompile(`[^a-z0-9_]+`)
