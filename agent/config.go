package agent

import (
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"go.yaml.in/yaml/v4"

	"hwsagent/probes/devices"
	"hwsagent/redact"
	"hwsagent/remotewrite/config"
)

// Config is a whole agent.yaml: checked, defaults filled in, variables expanded, and
// paths made absolute. It is plain data and holds secrets: to show it, use
// [Config.Redacted].
type Config struct {
	Global      GlobalConfig     `yaml:"global"`
	WAL         WALConfig        `yaml:"wal"`
	Probes      []ProbeConfig    `yaml:"probes"`
	Pull        *PullConfig      `yaml:"pull,omitempty"` // nil: off
	Receivers   ReceiversConfig  `yaml:"receivers,omitempty"`
	Web         WebConfig        `yaml:"web"`
	RemoteWrite []*config.Config `yaml:"remote_write"`

	// What is scraped, as in Prometheus. The jobs of both keys are checked and complete.
	ScrapeConfigs     []ScrapeConfig  `yaml:"scrape_configs"`
	ScrapeConfigFiles []string        `yaml:"scrape_config_files"`
	scrape            scrapeJobs      // nil in a build that cannot scrape
	scrapeHidden      *redact.Secrets // what variables and files gave to the paths of their addresses

	entries      []ProbeConfig     // of the file; Probes are made of them, see expandTargets
	listProblems []devices.Problem // of the files of targets, as they were when this was loaded

	// File is the path it was loaded from, absolute; Dir is its directory. Further are the files of
	// conf.d there that belong to it, in their order.
	File    string   `yaml:"-"`
	Dir     string   `yaml:"-"`
	Further []string `yaml:"-"`
}

// GlobalConfig holds the defaults of every probe and what every target gets.
type GlobalConfig struct {
	ScrapeInterval model.Duration    `yaml:"scrape_interval"` // default 15s
	ScrapeTimeout  model.Duration    `yaml:"scrape_timeout"`  // default 10s, or the interval if that is shorter
	ExternalLabels map[string]string `yaml:"external_labels"` // added to every series that lacks them

	// HWLabels is the default for probes without [ProbeConfig.HWLabels].
	HWLabels string `yaml:"hw_labels,omitempty"`

	// ScrapeStartTimestamps keeps the start timestamps that targets show. In OpenMetrics
	// text they are series whose names end in _created, which then are none any more.
	ScrapeStartTimestamps bool          `yaml:"scrape_start_timestamps,omitempty"`
	Scrape                scrapeGlobals `yaml:",inline"`
}

// Labels are the external labels as Prometheus' own type.
func (g *GlobalConfig) Labels() labels.Labels { return labels.FromMap(g.ExternalLabels) }

// WALConfig bounds the log. Where it lies is a flag, --storage.path.
type WALConfig struct {
	Sync         SyncMode       `yaml:"sync"`           // default 1s
	MaxBytes     config.Bytes   `yaml:"max_bytes"`      // of the whole log; default 2GiB
	MinFreeBytes config.Bytes   `yaml:"min_free_bytes"` // with less free the log does not grow; default 256MiB
	OnFull       string         `yaml:"on_full"`        // drop_oldest (the default) or reject
	Retain       model.Duration `yaml:"retain"`         // how long delivered data is kept; default 0s
	// WarnFullWithin: a target that takes nothing is a problem of the log once the log lasts less long
	// than that; default 24h, 0s: never before it is nearly full.
	WarnFullWithin model.Duration `yaml:"warn_full_within"`
	OrphanTTL      model.Duration `yaml:"orphan_ttl"` // how long a removed target's queue is kept; default 24h
}

// The values of [WALConfig.OnFull].
const (
	DropOldest = "drop_oldest"
	Reject     = "reject"
)

// WebConfig says where the agent's own page listens.
type WebConfig struct {
	Listen     string `yaml:"listen"`      // host:port, or "" for no listener; default 127.0.0.1:9464
	ConfigFile string `yaml:"config_file"` // TLS and users, in exporter-toolkit's format
	// InsecureListen allows an address other than loopback without ConfigFile.
	InsecureListen bool `yaml:"insecure_listen"`
	Pprof          bool `yaml:"pprof"` // serve /debug/pprof
}

// SyncMode says when the log is made durable: after every commit, or at an interval,
// which is also the most that a power cut can take.
type SyncMode struct {
	Always bool
	Every  time.Duration // unused when Always
}

// String is the mode as it is written in agent.yaml.
func (s SyncMode) String() string {
	if s.Always {
		return "always"
	}
	return model.Duration(s.Every).String()
}

// UnmarshalYAML reads "always" or a duration from 10ms to 1h.
func (s *SyncMode) UnmarshalYAML(n *yaml.Node) error {
	var text string
	if err := n.Load(&text); err != nil {
		return err
	}
	if text == "always" {
		*s = SyncMode{Always: true}
		return nil
	}
	d, err := model.ParseDuration(text)
	if err != nil {
		return fmt.Errorf(`%w: want "always" or a duration such as 1s`, err)
	}
	if time.Duration(d) < 10*time.Millisecond || time.Duration(d) > time.Hour {
		return fmt.Errorf(`%q is not between 10ms and 1h; "always" makes every commit durable`, text)
	}
	*s = SyncMode{Every: time.Duration(d)}
	return nil
}

// MarshalYAML writes what UnmarshalYAML reads.
func (s SyncMode) MarshalYAML() (any, error) { return s.String(), nil }

// ProbeConfig is one entry of probes: what every type has, and Settings.
type ProbeConfig struct {
	Name    string `yaml:"name"` // default: the type
	Type    string `yaml:"type"`
	Enabled bool   `yaml:"enabled"`          // default true; false keeps the entry without running it
	Target  string `yaml:"target,omitempty"` // becomes the label instance; empty: this host
	// Devices are the list of an entry that stands for several probes, one for each target. Load leaves
	// no list behind.
	Devices devices.List `yaml:",inline"`
	// Job is the label job: the name of the entry that had the list; empty: Name.
	Job      string         `yaml:"-"`
	Interval model.Duration `yaml:"interval"` // default global.scrape_interval
	// Timeout is at most Interval; default global.scrape_timeout, or Interval if
	// that is shorter.
	Timeout              model.Duration    `yaml:"timeout"`
	Labels               map[string]string `yaml:"labels,omitempty"` // override job and instance, too
	MetricRelabelConfigs []*relabel.Config `yaml:"metric_relabel_configs,omitempty"`
	// HWLabels chooses the names of hw_*: one of [hw.Dialects]; "" is global.hw_labels, or else the names of the conventions.
	HWLabels   string `yaml:"hw_labels,omitempty"`
	MaxSamples int    `yaml:"max_samples,omitempty"` // a round; 0: the runner's own limit
	MaxSeries  int    `yaml:"max_series,omitempty"`  // at a time; further ones are refused; 0: no limit

	// Settings is the type's own configuration: *canary.Config, *exec.Config, *host.Config, *ipmi.Config, *nut.Config, *nvidia.Config, *redfish.Config, *site.Config, *smart.Config, *snmp.Config,
	// *textfile.Config, or *SelfConfig.
	Settings any `yaml:"-"`
}

// SelfConfig is the configuration of the probe that reports the agent itself.
type SelfConfig struct {
	Level SelfLevel `yaml:"level,omitempty"` // [SelfBrief] if empty
}

// SelfLevel says how many of the agent's own series are sent. /metrics has all of them.
type SelfLevel string

// The levels.
const (
	SelfBrief SelfLevel = "brief" // what dashboards and alerts read
	SelfFull  SelfLevel = "full"
)

// SelfName is the name of the self probe where the file does not configure one, and
// so the job of the agent's own series.
const SelfName = "hwsagent"

func defaultConfig() *Config {
	return &Config{
		WAL: WALConfig{
			Sync:           SyncMode{Every: time.Second},
			MaxBytes:       2 << 30,
			MinFreeBytes:   256 << 20,
			OnFull:         DropOldest,
			OrphanTTL:      model.Duration(24 * time.Hour),
			WarnFullWithin: model.Duration(24 * time.Hour),
		},
		Web: WebConfig{Listen: "127.0.0.1:9464"},
	}
}

// Load reads, expands and checks a configuration file and those of the directory conf.d beside it,
// *.yaml in the order of their names. env looks up environment
// variables (os.LookupEnv). Files named by ${file:…} are read; files that keys name
// (certificates, tokens) are not, see [Check]. Every mistake that can be found is
// found: the error is then a *[ConfigErrors].
func Load(path string, env func(string) (string, bool)) (*Config, []Warning, error) {
	return loadFile(path, env, readSmallFile)
}

func loadFile(path string, env func(string) (string, bool), readFile func(string) ([]byte, error)) (*Config, []Warning, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, nil, fmt.Errorf("read configuration: %w", err)
	}
	files, early, err := readConfig(path)
	if err != nil {
		return nil, nil, err
	}
	cfg, warns, err := loadTexts(files, filepath.Dir(abs), env, readFile)
	if cfg != nil {
		cfg.File = abs
		for _, f := range files[1:] {
			cfg.Further = append(cfg.Further, f.name)
		}
	}
	return cfg, append(early, warns...), err
}

// LoadBytes is [Load] of a text that is already read. path is for messages, and its
// directory is what relative paths in the text are relative to.
func LoadBytes(path string, text []byte, env func(string) (string, bool)) (*Config, []Warning, error) {
	cfg, warns, err := loadTexts([]configText{{path, text}}, filepath.Dir(path), env, readSmallFile)
	if cfg != nil {
		cfg.File = path
	}
	return cfg, warns, err
}

// loadTexts does the work: parse, expand, decode, fill in, check. Each stage after the
// first goes on after mistakes, so that all are reported at once. Paths in the files are relative
// to dir, in whichever file they are.
func loadTexts(files []configText, dir string, env func(string) (string, bool), readFile func(string) ([]byte, error)) (*Config, []Warning, error) {
	d, err := parseAll(files)
	if err != nil {
		return nil, nil, err
	}
	cfg := defaultConfig()
	cfg.Dir = dir
	x := &expander{env: env, readFile: readFile, dir: dir}
	if d.root != nil {
		x.expand(d)
		d.decode(cfg)
		cfg.hideGiven(d)
	}
	cfg.fill(d)
	cfg.decodeScrape(d, x)
	cfg.validate(d)
	if err := d.allFailed(); err != nil {
		return nil, d.warnings(), err
	}
	cfg.absolutePaths()
	cfg.entries = cfg.Probes
	cfg.listProblems = cfg.expandTargets(new(devices.Files))
	return cfg, d.warnings(), nil
}

func readLimited(r io.Reader, limit int) ([]byte, error) {
	return io.ReadAll(io.LimitReader(r, int64(limit)+1))
}
