package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"hwsagent/redact"
	"hwsagent/web"
)

// ScrapeConfig is one entry of scrape_configs as it is in force, for people. What it may
// hold is the scraper's to say.
type ScrapeConfig struct{ shown *yaml.Node }

// MarshalYAML writes the entry without its secrets.
func (c ScrapeConfig) MarshalYAML() (any, error) { return c.shown, nil }

// scrapeGlobals are the keys of global that are about scraping only, as in Prometheus. They
// are checked, and given to each job, by the scraper.
type scrapeGlobals struct {
	ScrapeProtocols                []string `yaml:"scrape_protocols,omitempty"`
	BodySizeLimit                  string   `yaml:"body_size_limit,omitempty"`
	SampleLimit                    uint     `yaml:"sample_limit,omitempty"`
	TargetLimit                    uint     `yaml:"target_limit,omitempty"`
	LabelLimit                     uint     `yaml:"label_limit,omitempty"`
	LabelNameLengthLimit           uint     `yaml:"label_name_length_limit,omitempty"`
	LabelValueLengthLimit          uint     `yaml:"label_value_length_limit,omitempty"`
	KeepDroppedTargets             uint     `yaml:"keep_dropped_targets,omitempty"`
	MetricNameValidationScheme     string   `yaml:"metric_name_validation_scheme,omitempty"`
	MetricNameEscapingScheme       string   `yaml:"metric_name_escaping_scheme,omitempty"`
	ScrapeNativeHistograms         bool     `yaml:"scrape_native_histograms,omitempty"`
	ConvertClassicHistogramsToNHCB bool     `yaml:"convert_classic_histograms_to_nhcb,omitempty"`
	AlwaysScrapeClassicHistograms  bool     `yaml:"always_scrape_classic_histograms,omitempty"`
	ExtraScrapeMetrics             bool     `yaml:"extra_scrape_metrics,omitempty"`
	ScrapeFailureLogFile           string   `yaml:"scrape_failure_log_file,omitempty"`
}

// scrapeKinds are the keys that say where a job's targets come from.
var scrapeKinds = []string{"static_configs", "file_sd_configs", "http_sd_configs", "dns_sd_configs", "kubernetes_sd_configs"}

// scrapeEntry is one scrape configuration in one of the files that have some.
type scrapeEntry struct {
	in   *document
	path string // in that file
	dir  string
}

// scrapeEntries finds every scrape configuration: those of d, and those of the files that
// scrape_config_files names, which are read. The mistakes of such a file go to d.
func (c *Config) scrapeEntries(d *document, x *expander) []scrapeEntry {
	entries := entriesOf(d, c.Dir)
	for i, pattern := range c.ScrapeConfigFiles {
		at := fmt.Sprintf("scrape_config_files[%d]", i)
		if !filePattern.MatchString(pattern) {
			d.errorAt(at, fmt.Sprintf("%q is no path of files", pattern), "a * may stand in the last part only")
			continue
		}
		path := pattern
		if !filepath.IsAbs(path) {
			path = filepath.Join(c.Dir, path)
		}
		files, err := filepath.Glob(path)
		if err != nil {
			d.errorAt(at, err.Error(), "")
			continue
		}
		if len(files) == 0 {
			d.warnAt(at, fmt.Sprintf("no file is called %q", pattern), "files are looked for at a start and a reload")
		}
		for _, name := range files {
			entries = append(entries, d.scrapeFile(at, name, x)...)
		}
	}
	return entries
}

// filePattern is Prometheus' own of such paths.
var filePattern = regexp.MustCompile(`^[^*]*(\*[^/]*)?$`)

// scrapeFile reads one file that the value at named.
func (d *document) scrapeFile(at, name string, x *expander) []scrapeEntry {
	text, err := readAtMost(name, maxConfigBytes)
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

// decodeScrape checks all scrape configurations and makes the jobs of them.
func (c *Config) decodeScrape(d *document, x *expander) {
	entries := c.scrapeEntries(d, x)
	if len(entries) > 0 && !canScrape {
		entries[0].in.errorAtKey("scrape_configs", "this build of the agent cannot scrape", "it was built with -tags minimal; use the usual one, or remove the key")
		return
	}
	jobs := map[string]scrapeEntry{}
	src := scrapeSource{Global: c.scrapeGlobal(d)}
	if c.Global.ScrapeTimeout > c.Global.ScrapeInterval || d.wrongBelow("global") {
		src.Global = anyGlobal // every job would repeat the mistake
	}
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
				e.in.errorAt(e.path+".job_name", fmt.Sprintf("the name %q is that of %s, too", name.Value, where), "give each job a name of its own")
			}
			jobs[name.Value] = e
		}
		theirs, own := e.split(n)
		src.Entries = append(src.Entries, scrapeText{entry: e, node: theirs, Text: e.in.flowText(theirs), Dir: e.dir, MaxSeries: own.MaxSeries})
	}
	c.hideGivenScrape(entries)
	src.Hidden = c.scrapeHidden
	c.scrape = parseScrape(d, src)
	if c.scrape == nil {
		return
	}
	if err := c.showScrape(d); err != nil {
		d.errorAt("scrape_configs", err.Error(), "")
	}
}

// showScrape makes what the configuration in force shows of the jobs.
func (c *Config) showScrape(d *document) error {
	text, err := c.scrape.YAML()
	if err != nil {
		return fmt.Errorf("write scrape_configs: %w", err)
	}
	var list yaml.Node
	if err := yaml.Load(text, &list); err != nil {
		return fmt.Errorf("write scrape_configs: %w", err)
	}
	for i, n := range list.Content[0].Content {
		maskTree(d, "scrape_configs[0]", n)
		cutTree(c.scrapeHidden, n)
		if limit := c.scrape.MaxSeries(c.scrape.Names()[i]); limit > 0 {
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

// scrapeOwn is what is ours in an entry, below the key hwsagent.
type scrapeOwn struct {
	MaxSeries int `yaml:"max_series"` // that the job may have at a time; 0: no limit
}

// split takes apart what is Prometheus' in the entry and what is ours. Ways of discovery
// that there are not are mistakes, and in neither.
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

// scrapeGlobal is what the jobs take from global: what the file has there about scraping,
// with the agent's own defaults.
func (c *Config) scrapeGlobal(d *document) string {
	ours := map[string]bool{"scrape_interval": true, "scrape_timeout": true}
	for _, f := range yamlFields(reflect.TypeFor[scrapeGlobals]()) {
		ours[f.key] = true
	}
	text := fmt.Sprintf(`{scrape_interval: %s, scrape_timeout: %s`, c.Global.ScrapeInterval, c.Global.ScrapeTimeout)
	if n := d.value("global"); n != nil && n.Kind == yaml.MappingNode {
		rest := *n
		rest.Content = nil
		for i := 0; i+1 < len(n.Content); i += 2 {
			if key := n.Content[i].Value; ours[key] && !strings.HasPrefix(key, "scrape_interval") && key != "scrape_timeout" {
				rest.Content = append(rest.Content, n.Content[i], n.Content[i+1])
			}
		}
		if len(rest.Content) > 0 {
			inner := strings.TrimLeft(d.flowText(&rest), "\n")
			breaks := strings.Repeat("\n", rest.Content[0].Line-1)
			return text + "," + breaks + strings.TrimLeft(strings.TrimPrefix(inner, "{"), "\n")
		}
	}
	return text + "}"
}

// scrapeSource and scrapeText are what parseScrape is given; see the scraper's own types of
// these names.
type (
	scrapeSource struct {
		Global  string
		Hidden  *redact.Secrets // what is shown nowhere
		Entries []scrapeText
	}
	scrapeText struct {
		entry     scrapeEntry
		node      *yaml.Node // that Text is of
		Text, Dir string
		MaxSeries int
	}
)

// allFailed is what was found so far in d and the files that it names as one error, or nil.
func (d *document) allFailed() error {
	var all []ConfigError
	for _, one := range append([]*document{d}, d.inner...) {
		var many *ConfigErrors
		if errors.As(one.failed(), &many) {
			all = append(all, many.Errors...)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return &ConfigErrors{Errors: all}
}

// wrongBelow reports whether a mistake at path or below it is known.
func (d *document) wrongBelow(path string) bool {
	return slices.ContainsFunc(d.errs, func(e ConfigError) bool {
		return e.Path == path || strings.HasPrefix(e.Path, path+".")
	})
}

// scrapeJobs are checked scrape configurations.
type scrapeJobs interface {
	Names() []string
	// MaxSeries is how many series the job of that name may have at a time; 0: no limit.
	MaxSeries(job string) int
	// Same reports whether the job of that name is the same in other, or is not in one of the two.
	Same(other scrapeJobs, job string) bool
	// YAML is the list with defaults filled in and secrets hidden.
	YAML() ([]byte, error)
	// Check tells which jobs cannot work with the files that they name.
	Check() error
	// Lookable are the jobs whose targets Look looks up; Look scrapes none.
	Lookable() []string
	Look(ctx context.Context, job string) looked
	// Files are what jobs read credentials and certificates from.
	Files() []namedFile
}

// scraper reads what scrapeJobs say; it is given to the agent by the build.
type scraper interface {
	// Apply makes jobs those that run. Jobs that are unchanged go on undisturbed.
	Apply(jobs scrapeJobs) error
	// Run scrapes until ctx ends; nothing is appended once it has returned.
	Run(ctx context.Context) error
	// Status tells of each job, in the order of the configuration. It never waits.
	Status(now time.Time) []web.ScrapeStatus
	// ServeHTTP answers GET /api/v1/targets as Prometheus does.
	http.Handler
}
