package probes

import (
	"context"
	"errors"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
)

// Probe reads one thing, once per call.
type Probe interface {
	// Collect reads everything once and adds it to the round. It returns when it is done or when ctx ends, whichever is
	// first, and keeps no reference to the round afterwards. Samples added before an error are kept. Calls never
	// overlap. An error says which part failed and why; the runner adds the probe's name.
	Collect(ctx context.Context, r *Round) error
}

// Closer is implemented by probes that keep something open between rounds.
type Closer interface{ Close() error }

// Family holds the properties that a metric family's samples share. Probes declare their families once and add samples
// to them.
type Family struct {
	Name string           // of the family, as on a # TYPE line
	Help string           // one sentence
	Type model.MetricType // counter, gauge, histogram, …; "" is unknown
	Unit string           // base unit as in OpenMetrics, or ""
}

// Round collects the samples of one run of a probe. It is not safe for concurrent use: a probe that reads in parallel
// must add from one goroutine.
type Round struct {
	// Source is the type of the probe that adds to the round; "" unless the caller of the probe has set it.
	Source string

	samples []Sample
	refused []Sample
	labels  []string // memory of the samples' Labels
	limit   int
	over    int
}

// Sample is one sample of a round.
type Sample struct {
	Family *Family
	// Name is the sample's own name if it differs from the family's (x_bucket of x); empty means Family.Name.
	Name string
	// Labels are name, value, name, value, …; an empty value means no label.
	Labels []string
	// Value of a float sample; unused when H or FH is set.
	Value float64
	H     *histogram.Histogram
	FH    *histogram.FloatHistogram
	// ST and T are the start timestamp and the timestamp in milliseconds; 0 means
	// unknown for ST and the round's own time for T.
	ST, T     int64
	Exemplars []exemplar.Exemplar
}

// NewRound returns a round that keeps at most limit samples (0 means no limit); Over counts further ones.
func NewRound(limit int) *Round { return &Round{limit: limit} }

// Reset empties r, as if made by [NewRound], but keeps its memory. Its former samples become invalid.
func (r *Round) Reset(limit int) {
	clear(r.samples)
	clear(r.refused)
	clear(r.labels)
	*r = Round{samples: r.samples[:0], refused: r.refused[:0], labels: r.labels[:0], limit: limit}
}

// Add adds one float sample of f. labels are name, value, name, value, …; they are
// copied, so that a call allocates nothing once the round's memory has grown.
func (r *Round) Add(f *Family, v float64, labels ...string) {
	r.AddSample(Sample{Family: f, Value: v, Labels: r.Keep(labels...)})
}

// Keep returns a copy of labels in the memory of the round, for the Labels of several samples. It must not be modified.
func (r *Round) Keep(labels ...string) []string {
	at := len(r.labels)
	r.labels = append(r.labels, labels...)
	return slices.Clip(r.labels[at:])
}

// AddSample adds one sample of any kind.
func (r *Round) AddSample(s Sample) {
	if r.limit > 0 && len(r.samples) >= r.limit {
		r.over++
		return
	}
	r.samples = append(r.samples, s)
}

// Refuse notes a value of f that is not sent because hardware cannot have it. Labels name where it was read, as in Add.
func (r *Round) Refuse(f *Family, v float64, labels ...string) {
	if r.limit == 0 || len(r.refused) < r.limit {
		r.refused = append(r.refused, Sample{Family: f, Value: v, Labels: r.Keep(labels...)})
	}
}

// Refused returns the values noted by Refuse, in order.
func (r *Round) Refused() []Sample { return r.refused }

// Cut removes the samples after the first n, such as those of a text that turned out to be malformed.
func (r *Round) Cut(n int) { r.samples = r.samples[:min(n, len(r.samples))] }

// Samples returns the samples added so far, in order.
func (r *Round) Samples() []Sample { return r.samples }

// Over returns how many samples were refused because the round was full.
func (r *Round) Over() int { return r.over }

// Committer is implemented by probes that need the outcome of a round. Committed is called once after a round, never
// while Collect runs, with nil exactly if Collect returned nil and the log has acknowledged every sample that it added.
// Otherwise the error gives the reason: Collect failed, there were more samples than the limit, a sample was refused or
// dropped by relabelling, or the commit failed. Series that are not the probe's, up and stale markers, do not matter.
// It is not called after a round that hangs or that the end of the agent interrupts, nor by [Once].
type Committer interface{ Committed(err error) }

// ErrPartial marks an error of Collect after which the round is still useful: one of several readers failed, the rest
// of the round is good. Wrapped in the returned error it keeps `up` at 1 while the error is still shown.
var ErrPartial = errors.New("partly failed")
