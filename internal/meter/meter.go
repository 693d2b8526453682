// Package meter creates the agent's own metrics and remembers them. Each metric's level stands beside its name, so that
// both the selection of sent metrics and the list in the documentation come from the code that creates them.
package meter

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Level says where a metric appears. /metrics shows all levels.
type Level uint8

const (
	// Shown metrics are at /metrics only, unless the self probe has level: full.
	Shown Level = iota
	// NotZero metrics are also sent to targets, except series that are 0: states and reasons, most of which never
	// occur.
	NotZero
	// Sent metrics are always sent to targets.
	Sent
)

// Kind is the type of a metric, in Prometheus' words.
type Kind string

// The kinds of metrics.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
	Summary   Kind = "summary"
)

// Metric describes one of the agent's own metrics.
type Metric struct {
	Name   string
	Kind   Kind
	Labels []string // in the documented order; the labels of the whole set come first
	Level  Level
	Help   string // one sentence
}

// Set creates the metrics of one part of the agent. A Set must be used by one goroutine; its metrics may be used by
// any.
type Set struct {
	prefix     string
	labels     prometheus.Labels
	names      []string // label names, in order
	metrics    []Metric
	collectors []prometheus.Collector
}

// NewSet returns an empty set. The names of all its metrics begin with prefix, and all have the
// labels, given as pairs of a name and a value.
func NewSet(prefix string, labels ...string) *Set {
	s := &Set{prefix: prefix, labels: prometheus.Labels{}}
	for i := 0; i+1 < len(labels); i += 2 {
		s.labels[labels[i]] = labels[i+1]
		s.names = append(s.names, labels[i])
	}
	return s
}

// Metrics returns all metrics of the set, in the order of their creation.
func (s *Set) Metrics() []Metric { return s.metrics }

// Counter returns a counter.
func (s *Set) Counter(l Level, name, help string) prometheus.Counter {
	return add(s, prometheus.NewCounter(prometheus.CounterOpts(s.opts(l, Counter, name, help))))
}

// CounterVec returns a counter for each combination of labels.
func (s *Set) CounterVec(l Level, name, help string, labels ...string) *prometheus.CounterVec {
	return add(s, prometheus.NewCounterVec(prometheus.CounterOpts(s.opts(l, Counter, name, help, labels...)), labels))
}

// CounterFunc makes a counter that f reads, at any time and from any goroutine.
func (s *Set) CounterFunc(l Level, name, help string, f func() float64) {
	add(s, prometheus.NewCounterFunc(prometheus.CounterOpts(s.opts(l, Counter, name, help)), f))
}

// Gauge returns a gauge.
func (s *Set) Gauge(l Level, name, help string) prometheus.Gauge {
	return add(s, prometheus.NewGauge(prometheus.GaugeOpts(s.opts(l, Gauge, name, help))))
}

// GaugeVec returns a gauge for each combination of labels.
func (s *Set) GaugeVec(l Level, name, help string, labels ...string) *prometheus.GaugeVec {
	return add(s, prometheus.NewGaugeVec(prometheus.GaugeOpts(s.opts(l, Gauge, name, help, labels...)), labels))
}

// GaugeFunc makes a gauge that f reads, at any time and from any goroutine.
func (s *Set) GaugeFunc(l Level, name, help string, f func() float64) {
	add(s, prometheus.NewGaugeFunc(prometheus.GaugeOpts(s.opts(l, Gauge, name, help)), f))
}

// Histogram returns a histogram with the options of o, except name, help and labels.
func (s *Set) Histogram(l Level, name, help string, o prometheus.HistogramOpts) prometheus.Histogram {
	of := s.opts(l, Histogram, name, help)
	o.Name, o.Help, o.ConstLabels = of.Name, of.Help, of.ConstLabels
	return add(s, prometheus.NewHistogram(o))
}

// SummaryVec returns a summary for each value of the label.
func (s *Set) SummaryVec(l Level, name, help string, objectives map[float64]float64, label string) *prometheus.SummaryVec {
	of := s.opts(l, Summary, name, help, label)
	return add(s, prometheus.NewSummaryVec(prometheus.SummaryOpts{Name: of.Name, Help: of.Help, ConstLabels: of.ConstLabels, Objectives: objectives}, []string{label}))
}

// Desc describes a metric that the caller collects. The set does not register it.
func (s *Set) Desc(l Level, k Kind, name, help string, labels ...string) *prometheus.Desc {
	of := s.opts(l, k, name, help, labels...)
	return prometheus.NewDesc(of.Name, of.Help, labels, of.ConstLabels)
}

// Register registers all metrics of the set, or none. With a nil registerer the metrics count but are not shown.
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
