package scrape

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/alecthomas/units"
	commonconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/relabel"

	"hwsagent/receivers/scrape/kubernetes"
)

// settings is one scrape configuration. The keys, their defaults and the order of their checks
// are those of Prometheus (https://prometheus.io/docs/prometheus/latest/configuration/configuration/#scrape_config).
// Checked settings must not be changed.
type settings struct {
	JobName                  string         `yaml:"job_name"`
	HonorLabels              bool           `yaml:"honor_labels,omitempty"`
	HonorTimestamps          bool           `yaml:"honor_timestamps"`
	TrackTimestampsStaleness bool           `yaml:"track_timestamps_staleness"`
	Params                   url.Values     `yaml:"params,omitempty"`
	ScrapeInterval           model.Duration `yaml:"scrape_interval,omitempty"`
	ScrapeTimeout            model.Duration `yaml:"scrape_timeout,omitempty"`
	ScrapeProtocols          []protocol     `yaml:"scrape_protocols,omitempty"`
	ScrapeFallbackProtocol   protocol       `yaml:"fallback_scrape_protocol,omitempty"`
	// A nil switch is inherited from global.
	ScrapeNativeHistograms         *bool            `yaml:"scrape_native_histograms,omitempty"`
	AlwaysScrapeClassicHistograms  *bool            `yaml:"always_scrape_classic_histograms,omitempty"`
	ConvertClassicHistogramsToNHCB *bool            `yaml:"convert_classic_histograms_to_nhcb,omitempty"`
	ScrapeFailureLogFile           string           `yaml:"scrape_failure_log_file,omitempty"`
	MetricsPath                    string           `yaml:"metrics_path,omitempty"`
	Scheme                         string           `yaml:"scheme,omitempty"`
	EnableCompression              bool             `yaml:"enable_compression"`
	BodySizeLimit                  units.Base2Bytes `yaml:"body_size_limit,omitempty"` // uncompressed
	// A limit of 0 is inherited from global; 0 there means none.
	SampleLimit                    uint                   `yaml:"sample_limit,omitempty"`
	TargetLimit                    uint                   `yaml:"target_limit,omitempty"`
	LabelLimit                     uint                   `yaml:"label_limit,omitempty"`
	LabelNameLengthLimit           uint                   `yaml:"label_name_length_limit,omitempty"`  // bytes
	LabelValueLengthLimit          uint                   `yaml:"label_value_length_limit,omitempty"` // bytes
	NativeHistogramBucketLimit     uint                   `yaml:"native_histogram_bucket_limit,omitempty"`
	NativeHistogramMinBucketFactor float64                `yaml:"native_histogram_min_bucket_factor,omitempty"`
	KeepDroppedTargets             uint                   `yaml:"keep_dropped_targets,omitempty"`
	MetricNameValidationScheme     model.ValidationScheme `yaml:"metric_name_validation_scheme,omitempty"`
	MetricNameEscapingScheme       string                 `yaml:"metric_name_escaping_scheme,omitempty"`
	ExtraScrapeMetrics             *bool                  `yaml:"extra_scrape_metrics,omitempty"`

	HTTPClientConfig     commonconfig.HTTPClientConfig `yaml:",inline"`
	RelabelConfigs       []*relabel.Config             `yaml:"relabel_configs,omitempty"`
	MetricRelabelConfigs []*relabel.Config             `yaml:"metric_relabel_configs,omitempty"`

	DNS    []*dnsSettings  `yaml:"dns_sd_configs,omitempty"`
	Files  []*fileSettings `yaml:"file_sd_configs,omitempty"`
	HTTP   []*httpSettings `yaml:"http_sd_configs,omitempty"`
	Static []*listed       `yaml:"static_configs,omitempty"`

	Kubernetes []*kubernetes.Config `yaml:"kubernetes_sd_configs,omitempty"`
}

// UnmarshalYAML decodes a configuration on top of the defaults.
func (s *settings) UnmarshalYAML(unmarshal func(any) error) error {
	*s = settings{
		MetricsPath: "/metrics", Scheme: "http", HonorTimestamps: true, EnableCompression: true,
		HTTPClientConfig: commonconfig.DefaultHTTPClientConfig,
	}
	type plain settings
	return unmarshal((*plain)(s))
}

// check reports the mistakes that need no other settings.
func (s *settings) check() (all []Mistake) {
	empty := func(key string, is bool) {
		if is {
			all = append(all, Mistake{key, "empty or null section in " + key})
		}
	}
	empty("dns_sd_configs", slices.Contains(s.DNS, nil))
	empty("file_sd_configs", slices.Contains(s.Files, nil))
	empty("http_sd_configs", slices.Contains(s.HTTP, nil))
	empty("static_configs", slices.Contains(s.Static, nil))
	empty("kubernetes_sd_configs", slices.Contains(s.Kubernetes, nil))
	if s.JobName == "" {
		all = append(all, Mistake{"", "job_name is empty"})
	}
	if err := s.HTTPClientConfig.Validate(); err != nil {
		all = append(all, Mistake{"", err.Error()})
	}
	if len(s.RelabelConfigs) > 0 { // which could turn any text into an address
		return all
	}
	for i, g := range s.Static {
		if g == nil {
			continue
		}
		for j, t := range g.Targets {
			if err := checkAddress(t); err != nil {
				all = append(all, Mistake{fmt.Sprintf("static_configs[%d].targets[%d]", i, j), err.Error()})
			}
		}
	}
	return all
}

// checkAddress refuses a URL where an address belongs.
func checkAddress(address string) error {
	if strings.Contains(address, "/") {
		return fmt.Errorf("%q is not a valid hostname", address)
	}
	return nil
}

// setDirectory makes relative paths relative to dir.
func (s *settings) setDirectory(dir string) {
	for _, f := range s.Files {
		for i, name := range f.Files {
			f.Files[i] = commonconfig.JoinDir(dir, name)
		}
	}
	for _, h := range s.HTTP {
		h.HTTPClientConfig.SetDirectory(dir)
	}
	for _, k := range s.Kubernetes {
		k.SetDirectory(dir)
	}
	s.HTTPClientConfig.SetDirectory(dir)
	s.ScrapeFailureLogFile = commonconfig.JoinDir(dir, s.ScrapeFailureLogFile)
}

// native reports whether native histograms are taken.
func (s *settings) native() bool { return s.ScrapeNativeHistograms != nil && *s.ScrapeNativeHistograms }

// convert reports whether classic histograms are converted to native ones.
func (s *settings) convert() bool {
	return s.ConvertClassicHistogramsToNHCB != nil && *s.ConvertClassicHistogramsToNHCB
}

// classic reports whether a classic histogram is taken beside its native form.
func (s *settings) classic() bool {
	return s.AlwaysScrapeClassicHistograms != nil && *s.AlwaysScrapeClassicHistograms
}

// extra reports whether a scrape reports the additional series.
func (s *settings) extra() bool { return s.ExtraScrapeMetrics != nil && *s.ExtraScrapeMetrics }

// escaping returns how a target should write names that the older formats do not allow.
func (s *settings) escaping() model.EscapingScheme {
	scheme, err := model.ToEscapingScheme(s.MetricNameEscapingScheme)
	if err != nil {
		return model.UnderscoreEscaping // the configuration has been checked
	}
	return scheme
}
