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
	"hwsagent/receivers/otlp/translation"
)

// deltaIdle is how long a stream of deltas may pause before its sum is dropped; the sum then restarts, which readers
// see as a counter reset.
const deltaIdle = time.Hour

// stream is the sum of the deltas of one series. The translation of every kind of point except the exponential one
// gives plain sums, so each series is summed by itself.
type stream struct {
	hash   uint64 // of labels
	labels labels.Labels
	st, t  int64 // milliseconds: start of the first delta, and time of the newest; t is math.MinInt64 before the first
	v      float64
	fh     *histogram.FloatHistogram // nil for a float; never changed, only replaced
	seen   time.Time                 // when the newest delta was added; a refused delta does not prolong the life of a sum
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

// find returns a copy of the state of a stream after the request so far, for the caller to change and to keep. It is
// nil, with the reason, if there is no room for a new stream.
func (s *sums) find(ls labels.Labels) (*stream, receivers.Reason) {
	hash := ls.Hash()
	old := s.changed[hash]
	if old == nil {
		old = s.d.streams[hash]
	}
	switch {
	case old == nil && len(s.d.streams)+s.added >= s.d.limit:
		return nil, receivers.NewSeries
	case old == nil:
		return &stream{hash: hash, labels: ls, t: math.MinInt64}, ""
	case !labels.Equal(old.labels, ls):
		return nil, receivers.InvalidSample // two series with the same hash
	}
	one := *old
	return &one, ""
}

// keep sets the state of a stream, if the request is stored.
func (s *sums) keep(one *stream) {
	if s.changed[one.hash] == nil && s.d.streams[one.hash] == nil {
		s.added++
	}
	one.seen = s.now
	s.changed[one.hash] = one
}

// add adds a delta: v, or h unless it is nil. If it refuses the delta, with a reason, the stream must not be kept.
func (s *stream) add(st, t int64, v float64, h *histogram.Histogram) (refused receivers.Reason, why string) {
	switch {
	case t <= s.t:
		// Usually the sender repeats a delta because the answer was lost: do not add it twice.
		return receivers.OldDelta, "a delta up to that time was counted before"
	case s.t != math.MinInt64 && st != 0 && st < s.st:
		return receivers.OldDelta, "a delta began before its series did: do two programs send it?"
	case s.t == math.MinInt64:
		s.st = st
	}
	s.t = t
	if h != nil {
		return s.addNative(st, h)
	}
	if s.v += v; math.IsNaN(s.v) { // as would be every later sum
		return receivers.InvalidSample, "a delta, or the sum with it, is not a number"
	}
	return "", ""
}

func (s *stream) addNative(st int64, h *histogram.Histogram) (refused receivers.Reason, why string) {
	if err := h.Validate(); err != nil { // otherwise the sum would be invalid forever
		return receivers.InvalidSample, err.Error()
	}
	if !addable(h.PositiveSpans) || !addable(h.NegativeSpans) {
		return receivers.InvalidSample, "a delta has buckets for values that no number has"
	}
	sum := h.ToFloat(nil)
	if s.fh != nil {
		whole, _, otherBounds, err := s.fh.Copy().Add(sum)
		switch {
		case err != nil:
			return receivers.InvalidSample, fmt.Sprintf("add up histograms: %s", err)
		case otherBounds: // whole has only those that both have: begin again
			s.st = st
		default:
			sum = whole
		}
	}
	if math.IsNaN(sum.Sum) {
		return receivers.InvalidSample, "the sum of a delta, or the sum with it, is not a number"
	}
	if err := coarsen(sum); err != nil {
		return receivers.InvalidSample, fmt.Sprintf("add up histograms: %s", err)
	}
	sum.CounterResetHint = histogram.UnknownCounterReset
	s.fh = sum
	return "", ""
}

// summing adds up the deltas that the translation appends.
type summing struct {
	*appender
	sums *sums
}

// Append implements [translation.Sink]. fh is nil: counts of OTLP are integers.
func (a *summing) Append(ref storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AOptions) (storage.SeriesRef, error) {
	none := v // a stale marker if the point has no value
	if h != nil {
		none = h.Sum
	}
	if ls.Get(model.MetricNameLabel) == translation.TargetInfo || value.IsStaleNaN(none) {
		return a.appender.Append(ref, ls, st, t, v, h, fh, o)
	}
	if err := a.series(ls, o); err != nil {
		return 0, err
	}
	if a.b.Refuses() { // such a series needs no sum; Append counts the sample with its reason
		return a.appender.Append(ref, ls, st, t, v, h, fh, o)
	}
	if v < 0 && o.Metadata.Type == model.MetricTypeCounter { // the sum would look like a counter that begins again
		a.b.RefuseSamples(receivers.InvalidSample, 1, fmt.Sprintf("%.200s (%s): a delta of a monotonic sum is negative", ls, receivers.InvalidSample))
		return 0, nil
	}
	s, full := a.sums.find(ls)
	if s == nil {
		a.b.RefuseSamples(full, 1, fmt.Sprintf("%.200s: the receiver keeps no further streams of deltas", ls))
		return 0, nil
	}
	if reason, why := s.add(st, t, v, h); reason != "" {
		a.b.RefuseSamples(reason, 1, fmt.Sprintf("%.200s (%s): %s", ls, reason, why))
		return 0, nil
	}
	before := a.b.RefusedSamples()
	if err := a.appendSum(ref, s, h != nil, o); err != nil {
		return 0, err
	}
	if a.b.RefusedSamples() == before { // the log took the sum
		a.sums.keep(s)
	}
	return 0, nil
}

// appendSum appends the sum of a stream.
func (a *summing) appendSum(ref storage.SeriesRef, s *stream, native bool, o storage.AOptions) (err error) {
	if !native {
		_, err = a.appender.Append(ref, s.labels, s.st, s.t, s.v, nil, nil, o)
		return err
	}
	if whole := integers(s.fh); whole != nil {
		_, err = a.appender.Append(ref, s.labels, s.st, s.t, 0, whole, nil, o)
		return err
	}
	_, err = a.appender.Append(ref, s.labels, s.st, s.t, 0, nil, s.fh.Copy(), o)
	return err
}

// maxIndex bounds the indexes of buckets: at the finest resolution, of 256 buckets for each power of two, the numbers
// have indexes between -275,000 and 263,000.
const maxIndex = 1 << 19

// addable reports whether all buckets have an index that a number may have. With others Prometheus' addition overflows,
// and panics.
func addable(spans []histogram.Span) bool {
	end := int64(0)
	for _, s := range spans {
		start := end + int64(s.Offset)
		end = start + int64(s.Length)
		if start < -maxIndex || end > maxIndex {
			return false
		}
	}
	return true
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
