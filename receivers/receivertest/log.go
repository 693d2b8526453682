// Package receivertest has the common parts of the receivers' tests: a log in memory.
package receivertest

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/storage"
	"go.yaml.in/yaml/v4"

	"hwsagent/receivers"
)

// ErrFull is an error for [Log.Fail], for a log whose budget is used up.
var ErrFull = errors.New("log is full")

// Sample is a committed sample.
type Sample struct {
	Labels    string
	Family    string
	Type      string
	Help      string
	ST, T     int64
	V         float64
	H         *histogram.Histogram
	FH        *histogram.FloatHistogram
	Exemplars int
}

// Log stores the samples that receivers commit. It is safe for concurrent use.
type Log struct {
	mu        sync.Mutex
	samples   []Sample
	commits   int
	rollbacks int
	filtered  int
	forgotten int // series
	forgetIn  int // samples; 0 is never
	nameless  int // samples
	fail      error
	newest    map[string]Sample
	refs      map[string]storage.SeriesRef
	series    map[storage.SeriesRef]labels.Labels
}

// Gate returns a gate in front of the log, with rules of metric_relabel_configs.
func (l *Log) Gate(name string, limits receivers.Limits, rules ...*relabel.Config) *receivers.Gate {
	return receivers.NewGate(receivers.GateOptions{
		Name: name, Limits: limits, Relabel: rules, Out: l, Logger: slog.New(slog.DiscardHandler),
		Full: func(err error) bool { return errors.Is(err, ErrFull) },
	})
}

// Rules parses metric_relabel_configs.
func Rules(t testing.TB, text string) (rules []*relabel.Config) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &rules); err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		if err := r.Validate(model.UTF8Validation); err != nil {
			t.Fatal(err)
		}
	}
	return rules
}

// Labels implements [receivers.Log].
func (l *Log) Labels(ref storage.SeriesRef) labels.Labels {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.series[ref]
}

// Forget makes the log forget all series before the n-th sample from now, counted from 1, as it does with idle ones.
func (l *Log) Forget(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forgetIn = n
}

// Nameless returns how many samples came without labels for series that the log had forgotten.
func (l *Log) Nameless() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.nameless
}

// find returns the reference and the labels of a series, which it makes if there is none with these labels. l.mu must be held.
func (l *Log) find(ref storage.SeriesRef, ls labels.Labels) (storage.SeriesRef, labels.Labels, error) {
	if known := l.series[ref]; !known.IsEmpty() {
		return ref, known, nil
	}
	if ls.IsEmpty() {
		l.nameless++
		return 0, ls, storage.ErrNotFound
	}
	if l.refs == nil {
		l.refs, l.series = map[string]storage.SeriesRef{}, map[storage.SeriesRef]labels.Labels{}
	}
	if l.refs[ls.String()] == 0 {
		ref = storage.SeriesRef(l.forgotten + len(l.refs) + 1) // #nosec G115 -- counts
		l.refs[ls.String()], l.series[ref] = ref, ls
	}
	return l.refs[ls.String()], ls, nil
}

// Fail makes each Commit fail with err, until it is nil.
func (l *Log) Fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail = err
}

// Samples returns the samples committed so far; separate exemplars appear as samples without a value.
func (l *Log) Samples() []Sample {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Sample(nil), l.samples...)
}

// Counts returns how many commits and rollbacks there were.
func (l *Log) Counts() (commits, rollbacks int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.commits, l.rollbacks
}

// AppenderV2 implements [storage.AppendableV2].
func (l *Log) AppenderV2(context.Context) storage.AppenderV2 { return &appender{log: l} }

// Filtered returns how many samples relabelling dropped in committed batches.
func (l *Log) Filtered() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.filtered
}

type appender struct {
	log      *Log
	samples  []Sample
	filtered int
}

// Filtered counts samples dropped by relabelling, as an appender of package inputs does.
func (a *appender) Filtered(n int) { a.filtered += n }

// Append implements [storage.AppenderV2]. Like the log, it refuses a second value for the newest time of a series.
func (a *appender) Append(ref storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AOptions) (storage.SeriesRef, error) {
	switch {
	case h != nil && h.Validate() != nil:
		return 0, h.Validate()
	case fh != nil && fh.Validate() != nil:
		return 0, fh.Validate()
	}
	a.log.mu.Lock()
	defer a.log.mu.Unlock()
	if a.log.forgetIn--; a.log.forgetIn == 0 {
		a.log.forgotten += len(a.log.series)
		a.log.refs, a.log.series = nil, nil
	}
	ref, ls, err := a.log.find(ref, ls)
	if err != nil {
		return 0, err
	}
	s := Sample{
		Labels: ls.String(), Family: o.MetricFamilyName, Type: string(o.Metadata.Type), Help: o.Metadata.Help,
		ST: st, T: t, V: v, H: h, FH: fh, Exemplars: len(o.Exemplars),
	}
	if last, ok := a.log.newest[s.Labels]; ok && last.T == t && last.V != v && h == nil && fh == nil {
		return 0, storage.ErrDuplicateSampleForTimestamp
	}
	a.samples = append(a.samples, s)
	return ref, nil
}

// AppendExemplar adds an exemplar by itself.
func (a *appender) AppendExemplar(ref storage.SeriesRef, ls labels.Labels, e exemplar.Exemplar) (storage.SeriesRef, error) {
	a.log.mu.Lock()
	defer a.log.mu.Unlock()
	ref, ls, err := a.log.find(ref, ls)
	if err != nil {
		return 0, err
	}
	a.samples = append(a.samples, Sample{Labels: ls.String(), T: e.Ts, Exemplars: 1})
	return ref, nil
}

// Commit implements [storage.AppenderV2].
func (a *appender) Commit() error {
	a.log.mu.Lock()
	defer a.log.mu.Unlock()
	if a.log.fail != nil {
		return a.log.fail
	}
	a.log.commits++
	a.log.filtered += a.filtered
	a.log.samples = append(a.log.samples, a.samples...)
	if a.log.newest == nil {
		a.log.newest = map[string]Sample{}
	}
	for _, s := range a.samples {
		if s.Exemplars == 0 || s.V != 0 {
			a.log.newest[s.Labels] = s
		}
	}
	return nil
}

// Rollback implements [storage.AppenderV2].
func (a *appender) Rollback() error {
	a.log.mu.Lock()
	defer a.log.mu.Unlock()
	a.log.rollbacks++
	return nil
}
