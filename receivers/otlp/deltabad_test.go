package otlp

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// deltaRig sends deltas of one second each.
type deltaRig struct {
	*rig
	t       testing.TB
	seconds int64
}

func newDeltaRig(t testing.TB, s Settings) *deltaRig { return &deltaRig{rig: newRig(s), t: t} }

// send sends the metrics that add makes for one second, as deltas; what is said to be refused is in the answer.
func (r *deltaRig) send(refused string, add func(ms pmetric.MetricSlice, from, to int64)) {
	r.t.Helper()
	from := now + 1000*r.seconds
	r.seconds++
	req := request(func(ms pmetric.MetricSlice) { add(ms, from, from+1000) })
	w := r.post("application/x-protobuf", must(req.MarshalProto()))
	if w.Code != 200 || !strings.Contains(w.Body.String(), refused) || refused == "" && w.Body.Len() > 0 {
		r.t.Errorf("second %d: %d %q, want refused: %q", r.seconds, w.Code, w.Body, refused)
	}
}

// counts returns the number of observations of each histogram in the log, in order.
func (r *deltaRig) counts() (all []string) {
	for _, s := range r.log.Samples() {
		switch {
		case s.H != nil:
			all = append(all, fmt.Sprint(s.H.Count))
		case s.FH != nil:
			all = append(all, fmt.Sprint("float ", s.FH.Count))
		}
	}
	return all
}

func (r *deltaRig) want(want string) {
	r.t.Helper()
	if got := strings.Join(r.counts(), " "); got != want {
		r.t.Errorf("the histograms in the log have %s observations, want %s", got, want)
	}
}

// spoiled changes the point of a delta that exponential makes.
func spoiled(spoil func(pmetric.ExponentialHistogramDataPoint)) func(pmetric.MetricSlice, int64, int64) {
	return func(ms pmetric.MetricSlice, from, to int64) {
		exponential(ms, from, to, 3, 1, 2)
		spoil(ms.At(0).ExponentialHistogram().DataPoints().At(0))
		sum(ms, pmetric.AggregationTemporalityDelta, from, to, 1)
	}
}

// TestBadDeltaHistogram: a delta that is no valid histogram is refused by itself. The sum goes on without it, and what
// came with it is stored.
func TestBadDeltaHistogram(t *testing.T) {
	type point = pmetric.ExponentialHistogramDataPoint
	good := spoiled(func(point) {})
	for name, spoil := range map[string]func(point){
		"a count that is not that of the buckets": func(p point) { p.SetCount(7) },
		"a negative count":                        func(p point) { p.Positive().BucketCounts().FromRaw([]uint64{1 << 63}); p.SetCount(1 << 63) },
		"buckets beyond all numbers":              func(p point) { p.Positive().SetOffset(math.MaxInt32 - 1) },
		"buckets below all numbers":               func(p point) { p.Positive().SetOffset(math.MinInt32) },
		"a sum that is not a number":              func(p point) { p.SetSum(math.NaN()) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newDeltaRig(t, Settings{})
			r.send("", good)
			r.send("1 of 3 samples", spoiled(spoil))
			r.send("", good)
			r.send("", good)
			r.want("3 6 9")
			r = newDeltaRig(t, Settings{})
			r.send("1 of 3 samples", spoiled(spoil)) // the first one of its series
			r.send("", good)
			r.want("3")
			for _, s := range r.log.Samples() {
				if s.H != nil && s.ST != now+1000 {
					t.Errorf("the sum does not begin with the first delta in it: %+v", s)
				}
			}
		})
	}
}

// TestInfiniteDeltas: a delta whose sum is not a number is refused.
func TestInfiniteDeltas(t *testing.T) {
	r := newDeltaRig(t, Settings{})
	for i, v := range []float64{math.Inf(1), math.Inf(-1), 1} {
		r.send(map[bool]string{true: "not a number"}[i == 1], func(ms pmetric.MetricSlice, from, to int64) {
			sum(ms, pmetric.AggregationTemporalityDelta, from, to, 0)
			ms.At(0).Sum().SetIsMonotonic(false) // else the negative one is refused for that
			ms.At(0).Sum().DataPoints().At(0).SetDoubleValue(v)
		})
	}
	for _, s := range r.log.Samples() {
		if math.IsNaN(s.V) {
			t.Errorf("the log has a sum that is not a number: %+v", s)
		}
	}
}

// TestDeltaBoundsChange: deltas with other bounds begin a new sum, with its own start. Added to the old one they would
// keep only the bounds that both have, forever.
func TestDeltaBoundsChange(t *testing.T) {
	r := newDeltaRig(t, Settings{ConvertHistogramsToNHCB: true})
	for _, bounds := range [][]float64{{1, 2, 3}, {1, 2, 3}, {5, 6}, {5, 6}} {
		r.send("", func(ms pmetric.MetricSlice, from, to int64) {
			m := ms.AppendEmpty()
			m.SetName("duration")
			h := m.SetEmptyHistogram()
			h.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
			p := h.DataPoints().AppendEmpty()
			p.SetStartTimestamp(at(from))
			p.SetTimestamp(at(to))
			p.SetCount(2)
			p.SetSum(2)
			p.ExplicitBounds().FromRaw(bounds)
			p.BucketCounts().FromRaw(append([]uint64{1, 1}, make([]uint64, len(bounds)-1)...))
		})
	}
	var got []string
	for _, s := range r.log.Samples() {
		if s.H != nil {
			got = append(got, fmt.Sprintf("%d %v since %d", s.H.Count, s.H.CustomValues, s.ST-now))
		}
	}
	if want := "[2 [1 2 3] since 0 4 [1 2 3] since 0 2 [5 6] since 2000 4 [5 6] since 2000]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestClockWasAhead: a sender whose clock was ahead gets a new sum when none of its deltas was added for as long as a
// sum is kept. Its refused deltas kept the sum forever.
func TestClockWasAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDeltaRig(t, Settings{})
		one := func(ms pmetric.MetricSlice, from, to int64) {
			sum(ms, pmetric.AggregationTemporalityDelta, from, to, 1)
		}
		r.seconds = 1e6
		r.send("", one)
		r.seconds = 0
		r.send("old_delta", one)
		const each = 10 * time.Minute
		for range 2 * deltaIdle / each {
			time.Sleep(each)
			from := now + 1000*r.seconds
			r.seconds++
			req := request(func(ms pmetric.MetricSlice) { one(ms, from, from+1000) })
			r.post("application/x-protobuf", must(req.MarshalProto()))
		}
		r.send("", one)
		all := r.log.Samples()
		if all[0].V != 1 || all[len(all)-2].V < 5 {
			t.Errorf("the new sum: %+v", all)
		}
	})
}
