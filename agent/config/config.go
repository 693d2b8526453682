package config

import (
	"fmt"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"go.yaml.in/yaml/v4"

	"hwsagent/internal/redact"
	"hwsagent/probes/devices"
	"hwsagent/receivers/scrape"
	remoteconfig "hwsagent/remotewrite/config"
)

// Config is a whole agent.yaml: checked, defaults filled in, variables expanded, and paths made absolute. It is plain
// data and holds secrets; use [Config.Redacted] to show it.
type Config struct {
	Global      Global                 `yaml:"global"`
	WAL         WAL                    `yaml:"wal"`
	Probes      []Probe                `yaml:"probes"`
	Pull        *Pull                  `yaml:"pull,omitempty"` // nil: off
	Receivers   Receivers              `yaml:"receivers,omitempty"`
	Web         Web                    `yaml:"web"`
	Config      Files                  `yaml:"config"`
	RemoteWrite []*remoteconfig.Config `yaml:"remote_write"`

	// The scrape configuration, as in Prometheus. The jobs of both keys are checked and complete.
	ScrapeConfigs     []ScrapeConfig `yaml:"scrape_configs"`
	ScrapeConfigFiles []string       `yaml:"scrape_config_files"` // Paths or patterns of files that have `scrape_configs:` and nothing else
	scrape            *Jobs
	scrapeHidden      *redact.Secrets // texts from variables and files in the URL paths of the jobs

	entries      []Probe           // as in the file; ExpandDevices turns them into Probes
	listProblems []devices.Problem // problems of device lists, as found at load time

	// File is the absolute path of the loaded file; Dir is its directory. Further lists the files of conf.d beside it
	// that belong to the configuration, in order.
	File    string   `yaml:"-"`
	Dir     string   `yaml:"-"`
	Further []string `yaml:"-"`

	included []string // absolute paths of the files that ${file:…} read
}

// Files says how the agent treats the files of the configuration.
type Files struct {
	// AutoReload reloads the configuration when the content of its files changes. The agent looks every 5 seconds, and
	// waits until two looks find the same.
	AutoReload bool `yaml:"auto_reload"`
}

// Global holds the defaults of every probe, and the labels that every target gets.
type Global struct {
	ScrapeInterval model.Duration    `yaml:"scrape_interval"` // how often a probe runs that has no interval of its own; default 15s
	ScrapeTimeout  model.Duration    `yaml:"scrape_timeout"`  // how long a round may take; default 10s, or the interval if that is shorter
	ExternalLabels map[string]string `yaml:"external_labels"` // added to every series that lacks them

	// HWLabels is the names of hw_*, for probes without a hw_labels of their own: semconv or metricshub; default semconv
	HWLabels string `yaml:"hw_labels,omitempty"`

	// ScrapeStartTimestamps keeps the start timestamps that scrape targets expose. In OpenMetrics text these are series
	// with names in _created, which then are no longer stored as series. Read at the start only.
	ScrapeStartTimestamps bool          `yaml:"scrape_start_timestamps,omitempty"`
	Scrape                scrape.Global `yaml:",inline"`
}

// Labels are the external labels as Prometheus' own type.
func (g *Global) Labels() labels.Labels { return labels.FromMap(g.ExternalLabels) }

// WAL bounds the log. The flag --storage.path says where it is.
type WAL struct {
	Sync         SyncMode           `yaml:"sync"`           // how often the log is synced, `10ms` to `1h`; `always`: before a sample is acknowledged. A power cut loses at most one and a half of this
	MaxBytes     remoteconfig.Bytes `yaml:"max_bytes"`      // space for the whole log, at least `1MiB`; a commit that takes more than half of it may exceed it for a moment
	MinFreeBytes remoteconfig.Bytes `yaml:"min_free_bytes"` // the log does not grow while the file system has less free space; 0: no limit
	OnFull       string             `yaml:"on_full"`        // when the log is full: `drop_oldest`, or `reject` new samples
	Retain       model.Duration     `yaml:"retain"`         // how long delivered data is kept, as far as max_bytes allows, for `wal replay`; default 0s
	// WarnFullWithin is when the status warns: a target accepts nothing and the log is full in less than this. `0s`: only
	// when it is nearly full.
	WarnFullWithin model.Duration `yaml:"warn_full_within"`
	OrphanTTL      model.Duration `yaml:"orphan_ttl"` // how long the queue of a target is kept that is no longer configured
}

// The values of [WAL.OnFull].
const (
	dropOldest = "drop_oldest"
	reject     = "reject"
)

// Web says where the agent's page listens.
type Web struct {
	Listen     string `yaml:"listen"`      // host:port; `""` switches the page off
	ConfigFile string `yaml:"config_file"` // TLS and users, in exporter-toolkit's format
	// InsecureListen allows an address that other hosts can reach without config_file.
	InsecureListen bool `yaml:"insecure_listen"`
	Pprof          bool `yaml:"pprof"` // serve /debug/pprof
}

// SyncMode says when the log is made durable: after every commit, or at an interval, which also bounds the data that a
// power cut can destroy.
type SyncMode struct {
	Always bool
	Every  time.Duration // unused when Always
}

// String returns the mode as it is written in agent.yaml.
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

// Probe is one entry of probes: the keys that every type has, and Settings.
type Probe struct {
	Name    string `yaml:"name"`             // unique; the label job, and the name in logs, metrics and commands; default the type
	Type    string `yaml:"type"`             // what to read; required
	Enabled bool   `yaml:"enabled"`          // false keeps the entry without running it; default true
	Target  string `yaml:"target,omitempty"` // the device to read, and the label instance; default this host
	// Devices is the list in an entry that stands for several probes, one for each target. Load leaves no list behind.
	Devices devices.List `yaml:",inline"`
	// Job is the label job: the name of the entry with the list; empty: Name.
	Job      string         `yaml:"-"`
	Interval model.Duration `yaml:"interval"` // how often it runs; default global.scrape_interval, or 1m for type self if that is longer
	// Timeout is how long a round may take, at most the interval; default global.scrape_timeout, or the interval if that
	// is shorter
	Timeout              model.Duration    `yaml:"timeout"`
	Labels               map[string]string `yaml:"labels,omitempty"` // added to every sample; they override job and instance, too
	MetricRelabelConfigs []*relabel.Config `yaml:"metric_relabel_configs,omitempty"`
	// HWLabels is the names of hw_*: semconv or metricshub; default global.hw_labels
	HWLabels   string `yaml:"hw_labels,omitempty"`
	MaxSamples int    `yaml:"max_samples,omitempty"` // a round with more samples fails as a whole; default 200000
	MaxSeries  int    `yaml:"max_series,omitempty"`  // samples of further series are refused; 0: no limit

	// Settings is the configuration of the type, as its entry in [catalog.Types] returns it.
	Settings any `yaml:"-"`
}

// selfName is the default name of the self probe, and so the job of the agent's own series.
const selfName = "hwsagent"

func defaults() *Config {
	return &Config{
		WAL: WAL{
			Sync:           SyncMode{Every: time.Second},
			MaxBytes:       2 << 30,
			MinFreeBytes:   256 << 20,
			OnFull:         dropOldest,
			OrphanTTL:      model.Duration(24 * time.Hour),
			WarnFullWithin: model.Duration(24 * time.Hour),
		},
		Web: Web{Listen: "127.0.0.1:9464"},
	}
}
