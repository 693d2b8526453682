package scrape

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/alecthomas/units"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/relabel"
)

// The defaults of Prometheus' global section.
const (
	defaultInterval = model.Duration(time.Minute)
	defaultTimeout  = model.Duration(10 * time.Second)
)

// Global holds the settings that all jobs of a configuration share: the keys of Prometheus' global
// section about scraping, but for the times.
type Global struct {
	ScrapeProtocols                []protocol             `yaml:"scrape_protocols,omitempty"`
	ScrapeFailureLogFile           string                 `yaml:"scrape_failure_log_file,omitempty"`
	BodySizeLimit                  units.Base2Bytes       `yaml:"body_size_limit,omitempty"`
	SampleLimit                    uint                   `yaml:"sample_limit,omitempty"`
	TargetLimit                    uint                   `yaml:"target_limit,omitempty"`
	LabelLimit                     uint                   `yaml:"label_limit,omitempty"`
	LabelNameLengthLimit           uint                   `yaml:"label_name_length_limit,omitempty"`
	LabelValueLengthLimit          uint                   `yaml:"label_value_length_limit,omitempty"`
	KeepDroppedTargets             uint                   `yaml:"keep_dropped_targets,omitempty"`
	MetricNameValidationScheme     model.ValidationScheme `yaml:"metric_name_validation_scheme,omitempty"`
	MetricNameEscapingScheme       string                 `yaml:"metric_name_escaping_scheme,omitempty"`
	ScrapeNativeHistograms         *bool                  `yaml:"scrape_native_histograms,omitempty"`
	ConvertClassicHistogramsToNHCB bool                   `yaml:"convert_classic_histograms_to_nhcb,omitempty"`
	AlwaysScrapeClassicHistograms  bool                   `yaml:"always_scrape_classic_histograms,omitempty"`
	ExtraScrapeMetrics             *bool                  `yaml:"extra_scrape_metrics,omitempty"`
}

// global is a Global with the times, checked and with the defaults filled in.
type global struct {
	Global
	ScrapeInterval, ScrapeTimeout model.Duration
}

// complete checks g and fills in the defaults.
func (g *global) complete() error {
	if g.MetricNameValidationScheme == model.UnsetValidation {
		g.MetricNameValidationScheme = model.UTF8Validation
	}
	g.ScrapeInterval = cmp.Or(g.ScrapeInterval, defaultInterval)
	if g.ScrapeTimeout > g.ScrapeInterval {
		return errors.New("global scrape timeout greater than scrape interval")
	}
	g.ScrapeTimeout = cmp.Or(g.ScrapeTimeout, min(defaultTimeout, g.ScrapeInterval))
	if g.ScrapeProtocols != nil {
		if err := checkProtocols(g.ScrapeProtocols); err != nil {
			return fmt.Errorf("%w for global config", err)
		}
	}
	return nil
}

// complete fills the missing settings of a job from g, and reports mistakes in those that depend on both.
func (s *settings) complete(g *global) (all []Mistake) {
	s.ScrapeInterval = cmp.Or(s.ScrapeInterval, g.ScrapeInterval)
	if s.ScrapeTimeout > s.ScrapeInterval {
		all = append(all, Mistake{"scrape_timeout", fmt.Sprintf("scrape timeout greater than scrape interval for scrape config with job name %q", s.JobName)})
	}
	s.ScrapeTimeout = cmp.Or(s.ScrapeTimeout, min(g.ScrapeTimeout, s.ScrapeInterval))
	s.inherit(g)
	if err := checkProtocols(s.ScrapeProtocols); err != nil {
		all = append(all, Mistake{"scrape_protocols", fmt.Sprintf("%s for scrape config with job name %q", err, s.JobName)})
	}
	if s.ScrapeFallbackProtocol != "" {
		if err := s.ScrapeFallbackProtocol.check(); err != nil {
			all = append(all, Mistake{"fallback_scrape_protocol", fmt.Sprintf("invalid fallback_scrape_protocol for scrape config with job name %q: %s", s.JobName, err)})
		}
	}
	if err := s.completeNames(g); err != nil {
		all = append(all, Mistake{"metric_name_escaping_scheme", err.Error()})
	}
	all = append(all, s.checkRules("relabel_configs", "target", s.RelabelConfigs)...)
	return append(all, s.checkRules("metric_relabel_configs", "metric", s.MetricRelabelConfigs)...)
}

// checkRules checks a list of relabelling rules.
func (s *settings) checkRules(key, kind string, rules []*relabel.Config) (all []Mistake) {
	for i, r := range rules {
		at := fmt.Sprintf("%s[%d]", key, i)
		if r == nil {
			all = append(all, Mistake{at, "empty or null " + kind + " relabeling rule in scrape config"})
		} else if err := r.Validate(s.MetricNameValidationScheme); err != nil {
			all = append(all, Mistake{at, err.Error()})
		}
	}
	return all
}

// inherit copies limits, switches and lists from g that the job does not set.
func (s *settings) inherit(g *global) {
	s.BodySizeLimit = cmp.Or(s.BodySizeLimit, g.BodySizeLimit, defaultBodySize)
	s.SampleLimit = cmp.Or(s.SampleLimit, g.SampleLimit, defaultSamples)
	s.TargetLimit = cmp.Or(s.TargetLimit, g.TargetLimit)
	s.LabelLimit = cmp.Or(s.LabelLimit, g.LabelLimit)
	s.LabelNameLengthLimit = cmp.Or(s.LabelNameLengthLimit, g.LabelNameLengthLimit)
	s.LabelValueLengthLimit = cmp.Or(s.LabelValueLengthLimit, g.LabelValueLengthLimit)
	s.KeepDroppedTargets = cmp.Or(s.KeepDroppedTargets, g.KeepDroppedTargets)
	s.ScrapeFailureLogFile = cmp.Or(s.ScrapeFailureLogFile, g.ScrapeFailureLogFile)
	s.ScrapeNativeHistograms = cmp.Or(s.ScrapeNativeHistograms, g.ScrapeNativeHistograms)
	s.ExtraScrapeMetrics = cmp.Or(s.ExtraScrapeMetrics, g.ExtraScrapeMetrics)
	if s.ConvertClassicHistogramsToNHCB == nil {
		s.ConvertClassicHistogramsToNHCB = new(g.ConvertClassicHistogramsToNHCB)
	}
	if s.AlwaysScrapeClassicHistograms == nil {
		s.AlwaysScrapeClassicHistograms = new(g.AlwaysScrapeClassicHistograms)
	}
	switch {
	case s.ScrapeProtocols != nil:
	case g.ScrapeProtocols != nil:
		s.ScrapeProtocols = g.ScrapeProtocols
	default:
		s.ScrapeProtocols = usualProtocols(s.native())
	}
}

// completeNames settles the allowed metric names, and how to request others. A job that sets only the
// former does not inherit the latter from g: the two might contradict each other.
func (s *settings) completeNames(g *global) error {
	of := func(names model.ValidationScheme) string {
		if names == model.LegacyValidation {
			return model.EscapeUnderscores
		}
		return model.AllowUTF8
	}
	usual := g.MetricNameEscapingScheme
	if usual == "" {
		usual = of(g.MetricNameValidationScheme)
	}
	if !escapes(usual) {
		return fmt.Errorf("unknown global name escaping method specified, must be one of %s, got %q", escapings, usual)
	}
	own := s.MetricNameValidationScheme != model.UnsetValidation
	if !own {
		s.MetricNameValidationScheme = g.MetricNameValidationScheme
	}
	switch {
	case s.MetricNameEscapingScheme != "":
	case own:
		s.MetricNameEscapingScheme = of(s.MetricNameValidationScheme)
	default:
		s.MetricNameEscapingScheme = usual
	}
	switch {
	case !escapes(s.MetricNameEscapingScheme):
		return fmt.Errorf("unknown scrape config name escaping method specified, must be one of %s, got %q", escapings, s.MetricNameEscapingScheme)
	case s.MetricNameEscapingScheme == model.AllowUTF8 && s.MetricNameValidationScheme != model.UTF8Validation:
		return errors.New("utf8 metric names requested but validation scheme is not set to UTF8")
	}
	return nil
}

// escapings lists the values of metric_name_escaping_scheme, for people.
const escapings = "'" + model.AllowUTF8 + "', '" + model.EscapeUnderscores + "', '" + model.EscapeDots + "', or '" + model.EscapeValues + "'"

func escapes(scheme string) bool {
	switch scheme {
	case model.AllowUTF8, model.EscapeUnderscores, model.EscapeDots, model.EscapeValues:
		return true
	}
	return false
}
