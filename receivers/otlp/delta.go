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

// deltaIdle is how long a stream of deltas may pause before its sum is forgotten; it then
// begins anew, which readers see as a reset of the counter.
const deltaIdle = time.Hour

// stream is what the deltas of one series add up to. The translation of every kind of point
// but the exponential one is a row of plain sums, so a series is what there is to add up.
type stream struct {
	labels labels.Labels
	st, t  int64 // milliseconds: of the first delta's start, and of the newest; t is math.MinInt64 before the first
	v      float64
	fh     *histogram.FloatHistogram // nil of a float
	seen   time.Time
}

// deltas are the sums of a receiver. They live in memory: after a restart sums begin anew,
// with a start timestamp of their own.
type deltas struct {
	mu      sync.Mutex // held while a request with deltas is stored
	limit   int
	streams map[uint64]*stream // by the hash of the labels
	swept   time.Time
}

func newDeltas(limit int) *deltas { return &deltas{limit: limit, streams: map[uint64]*stream{}} }

// begin begins the sums of one request. d.mu must be held until they are committed or given up.
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

// sums are what the streams become if a request is stored.
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

// find is the stream of a series as the request leaves it so far; it may be changed. It is
// nil, with the reason, where there may be no more.
func (s *sums) find(ls labels.Labels) (*stream, receivers.Reason) {
	hash := ls.Hash()
	if one := s.changed[hash]; one != nil {
		if !labels.Equal(one.labels, ls) {
			return nil, receivers.InvalidSample // two series of one hash
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

// summing adds up what the translation of deltas appends.
type summing struct {
	*appender
	sums *sums
}

// Append implements [translation.Sink].
func (a *summing) Append(ref storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AOptions) (storage.SeriesRef, error) {
	native := h != nil || fh != nil
	none := v // a stale marker where the point says that there is no value
	switch {
	case h != nil:
		none = h.Sum
	case fh != nil:
		none = fh.Sum
	}
	if ls.Get(model.MetricNameLabel) == "target_info" || value.IsStaleNaN(none) {
		return a.appender.Append(ref, ls, st, t, v, h, fh, o)
	}
	s, full := a.sums.find(ls)
	switch {
	case s == nil:
		a.b.RefuseSamples(full, 1, fmt.Sprintf("%.200s: no more streams of deltas are kept", ls))
		return 0, nil
	case t <= s.t:
		// Sent again because the answer was lost, mostly: what is in the sum is not added twice.
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

// maxBuckets bounds the buckets of a sum. SDKs keep 160; histograms that have nothing in common but
// their name would add up to any number.
const maxBuckets = 1024

var errBuckets = fmt.Errorf("the sum has more than %d buckets", maxBuckets)

// coarsen halves the resolution of a sum until it has no more buckets than it may, as an SDK
// does.
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

// integers is h with counts that are whole numbers, as OTLP's are; nil if they are not, or
// have become too great for that.
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
