package otlp

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/receivers"
)

// deltaIdle is how long a stream of deltas may pause before its sum is dropped; the sum then restarts, which readers
// see as a counter reset.
const deltaIdle = time.Hour

// stream is the sum of the deltas of one series. The translation of every kind of point except the exponential one
// gives plain sums, so each series is summed by itself.
type stream struct {
	labels labels.Labels
	st, t  int64 // milliseconds: start of the first delta, and time of the newest; t is math.MinInt64 before the first
	v      float64
	fh     *histogram.FloatHistogram // nil for a float
	seen   time.Time
}

// deltas holds the sums of a receiver. They are in memory only: after a restart sums begin again, with their own start
// timestamp.
type deltas struct {
	mu      sync.Mutex // held while a request with deltas is stored
	limit   int
	streams map[uint64]*stream // by the hash of the labels
	swept   time.Time
}

func newDeltas(limit int) *deltas { return &deltas{limit: limit, streams: map[uint64]*stream{}} }

// begin begins the sums of one request. d.mu must be held until they are committed or discarded.
func (d *deltas) begin(now time.Time) *sums {
	if now.Sub(d.swept) > deltaIdle/4 {
		d.swept = now
		for hash, s := range d.streams {
			if now.Sub(s.seen) > deltaIdle {
				delete(d.streams, hash)
			}
		}
	}
	return &sums{d: d, now: now, changed: map[uint64]*stream{}}
}

// sums holds the new states of streams if a request is stored.
type sums struct {
	d       *deltas
	now     time.Time
	changed map[uint64]*stream
	added   int
}

func (s *sums) commit() {
	for hash, one := range s.changed {
		s.d.streams[hash] = one
	}
}

// find returns the state of a stream after the request so far, for the caller to change. It is nil, with the reason, if
// there is no room for a new stream.
func (s *sums) find(ls labels.Labels) (*stream, receivers.Reason) {
	hash := ls.Hash()
	if one := s.changed[hash]; one != nil {
		if !labels.Equal(one.labels, ls) {
			return nil, receivers.InvalidSample // two series with the same hash
		}
		return one, ""
	}
	one := &stream{labels: ls, t: math.MinInt64}
	if old := s.d.streams[hash]; old != nil {
		if !labels.Equal(old.labels, ls) {
			return nil, receivers.InvalidSample
		}
		*one = *old
	} else {
		if len(s.d.streams)+s.added >= s.d.limit {
			return nil, receivers.NewSeries
		}
		s.added++
	}
	one.seen = s.now
	s.changed[hash] = one
	return one, ""
}

// summing adds up the deltas that the translation appends.
type summing struct {
	*appender
	sums *sums
}

// Append implements [translation.Sink].
func (a *summing) Append(ref storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AOptions) (storage.SeriesRef, error) {
	native := h != nil || fh != nil
	none := v // a stale marker if the point has no value
	switch {
	case h != nil:
		none = h.Sum
	case fh != nil:
		none = fh.Sum
	}
	if ls.Get(model.MetricNameLabel) == "target_info" || value.IsStaleNaN(none) {
		return a.appender.Append(ref, ls, st, t, v, h, fh, o)
	}
	if err := a.series(ls, o); err != nil {
		return 0, err
	}
	if a.b.Refuses() { // such a series needs no sum; Append counts the sample with its reason
		return a.appender.Append(ref, ls, st, t, v, h, fh, o)
	}
	if !native && math.IsNaN(v) { // every later sum would be NaN
		a.b.RefuseSamples(receivers.InvalidSample, 1, fmt.Sprintf("%.200s: a delta is not a number", ls))
		return 0, nil
	}
	s, full := a.sums.find(ls)
	switch {
	case s == nil:
		a.b.RefuseSamples(full, 1, fmt.Sprintf("%.200s: no more streams of deltas are kept", ls))
		return 0, nil
	case t <= s.t:
		// Usually the sender repeats a delta because the answer was lost: do not add it twice.
		a.b.RefuseSamples(receivers.OldDelta, 1, fmt.Sprintf("%.200s: a delta up to that time was counted before", ls))
		return 0, nil
	case s.t != math.MinInt64 && st != 0 && st < s.st:
		a.b.RefuseSamples(receivers.OldDelta, 1, fmt.Sprintf("%.200s: a delta began before its series did: do two programs send it?", ls))
		return 0, nil
	case s.t == math.MinInt64:
		s.st = st
	}
	s.t = t
	if !native {
		s.v += v
		return a.appender.Append(ref, s.labels, s.st, t, s.v, nil, nil, o)
	}
	delta := fh
	if h != nil {
		delta = h.ToFloat(nil)
	}
	sum := delta.Copy()
	if s.fh != nil {
		var err error
		if sum, _, _, err = s.fh.Copy().Add(delta); err != nil {
			a.b.RefuseSamples(receivers.InvalidSample, 1, fmt.Sprintf("%.200s: add up histograms: %s", ls, err))
			return 0, nil
		}
	}
	if err := coarsen(sum); err != nil {
		a.b.RefuseSamples(receivers.InvalidSample, 1, fmt.Sprintf("%.200s: add up histograms: %s", ls, err))
		return 0, nil
	}
	sum.CounterResetHint = histogram.UnknownCounterReset
	s.fh = sum
	if whole := integers(sum); whole != nil {
		return a.appender.Append(ref, s.labels, s.st, t, 0, whole, nil, o)
	}
	return a.appender.Append(ref, s.labels, s.st, t, 0, nil, sum.Copy(), o)
}

// maxBuckets bounds the buckets of a sum. SDKs keep 160; unrelated histograms under one name could add up to any
// number.
const maxBuckets = 1024

var errBuckets = fmt.Errorf("the sum has more than %d buckets", maxBuckets)

// coarsen halves the resolution of a sum until it has at most maxBuckets buckets, as an SDK does.
func coarsen(h *histogram.FloatHistogram) error {
	for len(h.PositiveBuckets)+len(h.NegativeBuckets) > maxBuckets {
		if h.UsesCustomBuckets() || h.Schema <= histogram.ExponentialSchemaMin {
			return errBuckets
		}
		if err := h.ReduceResolution(h.Schema - 1); err != nil {
			return err
		}
	}
	return nil
}

// integers returns h with integer counts, as OTLP has them; nil if they are not integers, or too great.
func integers(h *histogram.FloatHistogram) *histogram.Histogram {
	whole := func(f float64) bool { return f >= 0 && f < 1<<53 && f == math.Trunc(f) }
	ok := whole(h.Count) && whole(h.ZeroCount)
	deltasOf := func(counts []float64) []int64 {
		out, last := make([]int64, 0, len(counts)), int64(0)
		for _, c := range counts {
			ok = ok && whole(c)
			if !ok {
				return nil
			}
			out = append(out, int64(c)-last)
			last = int64(c)
		}
		return out
	}
	up, down := deltasOf(h.PositiveBuckets), deltasOf(h.NegativeBuckets)
	if !ok {
		return nil
	}
	return &histogram.Histogram{
		CounterResetHint: h.CounterResetHint, Schema: h.Schema, ZeroThreshold: h.ZeroThreshold,
		ZeroCount: uint64(h.ZeroCount), Count: uint64(h.Count), Sum: h.Sum,
		PositiveSpans: append([]histogram.Span(nil), h.PositiveSpans...), NegativeSpans: append([]histogram.Span(nil), h.NegativeSpans...),
		PositiveBuckets: up, NegativeBuckets: down, CustomValues: h.CustomValues,
	}
}
