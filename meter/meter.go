// Package meter makes the agent's own metrics and remembers what it made: where each is shown
// stands beside its name, so what is sent to targets and what the documentation lists are both
// read from the code that makes the metric.
package meter

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Level says who gets a metric. All levels are shown at /metrics.
type Level uint8

const (
	// Shown metrics are at /metrics only, unless the probe self has level: full.
	Shown Level = iota
	// NotZero is sent to targets as well, but for series that are 0: states and reasons
	// of which most never occur.
	NotZero
	// Sent is sent to targets.
	Sent
)

// Kind is the type of a metric, in Prometheus' words.
type Kind string

// The kinds that there are.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
	Summary   Kind = "summary"
)

// Metric describes one metric of the agent's own.
type Metric struct {
	Name   string
	Kind   Kind
	Labels []string // in the order in which they are documented; those that all of a set have come first
	Level  Level
	Help   string // one sentence
}

// Set makes the metrics of one part of the agent. It is used by one goroutine; what it makes may
// be used by any.
type Set struct {
	prefix     string
	labels     prometheus.Labels
	names      []string // of labels, in order
	metrics    []Metric
	collectors []prometheus.Collector
}

// NewSet makes an empty set. The names of all its metrics begin with prefix, and all have the
// labels, given as pairs of a name and a value.
func NewSet(prefix string, labels ...string) *Set {
	s := &Set{prefix: prefix, labels: prometheus.Labels{}}
	for i := 0; i+1 < len(labels); i += 2 {
		s.labels[labels[i]] = labels[i+1]
		s.names = append(s.names, labels[i])
	}
	return s
}

// Metrics are all that the set made, in that order.
func (s *Set) Metrics() []Metric { return s.metrics }

// Counter makes a counter.
func (s *Set) Counter(l Level, name, help string) prometheus.Counter {
	return add(s, prometheus.NewCounter(prometheus.CounterOpts(s.opts(l, Counter, name, help))))
}

// CounterVec makes a counter for each combination of labels.
func (s *Set) CounterVec(l Level, name, help string, labels ...string) *prometheus.CounterVec {
	return add(s, prometheus.NewCounterVec(prometheus.CounterOpts(s.opts(l, Counter, name, help, labels...)), labels))
}

// CounterFunc makes a counter that f reads, at any time and from any goroutine.
func (s *Set) CounterFunc(l Level, name, help string, f func() float64) {
	add(s, prometheus.NewCounterFunc(prometheus.CounterOpts(s.opts(l, Counter, name, help)), f))
}

// Gauge makes a gauge.
func (s *Set) Gauge(l Level, name, help string) prometheus.Gauge {
	return add(s, prometheus.NewGauge(prometheus.GaugeOpts(s.opts(l, Gauge, name, help))))
}

// GaugeVec makes a gauge for each combination of labels.
func (s *Set) GaugeVec(l Level, name, help string, labels ...string) *prometheus.GaugeVec {
	return add(s, prometheus.NewGaugeVec(prometheus.GaugeOpts(s.opts(l, Gauge, name, help, labels...)), labels))
}

// GaugeFunc makes a gauge that f reads, at any time and from any goroutine.
func (s *Set) GaugeFunc(l Level, name, help string, f func() float64) {
	add(s, prometheus.NewGaugeFunc(prometheus.GaugeOpts(s.opts(l, Gauge, name, help)), f))
}

// Histogram makes a histogram. Of o it takes what is not the name, the help and the labels.
func (s *Set) Histogram(l Level, name, help string, o prometheus.HistogramOpts) prometheus.Histogram {
	of := s.opts(l, Histogram, name, help)
	o.Name, o.Help, o.ConstLabels = of.Name, of.Help, of.ConstLabels
	return add(s, prometheus.NewHistogram(o))
}

// SummaryVec makes a summary for each value of the label.
func (s *Set) SummaryVec(l Level, name, help string, objectives map[float64]float64, label string) *prometheus.SummaryVec {
	of := s.opts(l, Summary, name, help, label)
	return add(s, prometheus.NewSummaryVec(prometheus.SummaryOpts{Name: of.Name, Help: of.Help, ConstLabels: of.ConstLabels, Objectives: objectives}, []string{label}))
}

// Desc describes a metric that the caller collects. The set does not register it.
func (s *Set) Desc(l Level, k Kind, name, help string, labels ...string) *prometheus.Desc {
	of := s.opts(l, k, name, help, labels...)
	return prometheus.NewDesc(of.Name, of.Help, labels, of.ConstLabels)
}

// Register registers all that the set made, or nothing. A nil registerer is none: the metrics
// count and are not shown.
func (s *Set) Register(r prometheus.Registerer) error {
	if r == nil {
		return nil
	}
	for i, c := range s.collectors {
		if err := r.Register(c); err != nil {
			for _, done := range s.collectors[:i] {
				r.Unregister(done)
			}
			return fmt.Errorf("register metrics: %w", err)
		}
	}
	return nil
}

// Unregister undoes Register.
func (s *Set) Unregister(r prometheus.Registerer) {
	if r == nil {
		return
	}
	for _, c := range s.collectors {
		r.Unregister(c)
	}
}

func (s *Set) opts(l Level, k Kind, name, help string, labels ...string) prometheus.Opts {
	m := Metric{Name: s.prefix + name, Kind: k, Labels: append(s.names[:len(s.names):len(s.names)], labels...), Level: l, Help: help}
	s.metrics = append(s.metrics, m)
	return prometheus.Opts{Name: m.Name, Help: help, ConstLabels: s.labels}
}

func add[C prometheus.Collector](s *Set, c C) C {
	s.collectors = append(s.collectors, c)
	return c
}
