package otlp

import (
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"hwsagent/receivers"
	"hwsagent/receivers/receivertest"
)

// TestRejectedPoints: the answer counts points, as its field says, and not the series that a point has become: the answer to
// one refused histogram does not count a dozen rejected points. Samples that are not points of the request, such as
// target_info, are a warning and no rejected point.
func TestRejectedPoints(t *testing.T) {
	histogram := func(ms pmetric.MetricSlice, kind pmetric.AggregationTemporality, bounds ...float64) {
		m := ms.AppendEmpty()
		m.SetName("size")
		h := m.SetEmptyHistogram()
		h.SetAggregationTemporality(kind)
		p := h.DataPoints().AppendEmpty()
		p.SetTimestamp(at(now))
		p.SetCount(1)
		p.ExplicitBounds().FromRaw(bounds)
		p.BucketCounts().FromRaw(append([]uint64{1}, make([]uint64, len(bounds))...))
	}
	const cumulative, delta = pmetric.AggregationTemporalityCumulative, pmetric.AggregationTemporalityDelta
	for name, tc := range map[string]struct {
		series   int // that the receiver may have
		fill     func(pmetric.MetricSlice)
		rejected int64
	}{
		"a histogram": {2, func(ms pmetric.MetricSlice) { histogram(ms, cumulative, 1, 2, 3) }, 1},
		"a delta":     {2, func(ms pmetric.MetricSlice) { histogram(ms, delta, 1, 2, 3) }, 1},
		"one of two": {6, func(ms pmetric.MetricSlice) {
			histogram(ms, cumulative, 1, 2)
			sum(ms, cumulative, start, now, 1)
			histogram(ms, cumulative, 8, 9)
		}, 1},
		"with a weeded one": {2, func(ms pmetric.MetricSlice) {
			histogram(ms, cumulative, 1, 2, 3)
			sum(ms, pmetric.AggregationTemporalityUnspecified, start, now, 1)
		}, 2},
		"only of target_info": {1, func(ms pmetric.MetricSlice) { sum(ms, cumulative, start, now, 1) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := &receivertest.Log{}
			limits := receivers.DefaultLimits()
			limits.ActiveSeries = tc.series
			g := l.Gate("otlp", limits)
			v := New(Settings{}, 100)
			r := &rig{l, g, v.HTTP(g), v.GRPC(g)}
			w := r.post("application/x-protobuf", must(request(tc.fill).MarshalProto()))
			answer := pmetricotlp.NewExportResponse()
			if err := answer.UnmarshalProto(w.Body.Bytes()); err != nil || w.Code != 200 {
				t.Fatalf("%d %v", w.Code, err)
			}
			if got := answer.PartialSuccess(); got.RejectedDataPoints() != tc.rejected || !strings.Contains(got.ErrorMessage(), "refused") {
				t.Errorf("%d points are rejected, want %d: %s", got.RejectedDataPoints(), tc.rejected, got.ErrorMessage())
			}
			w = r.post("application/json", must(request(tc.fill).MarshalJSON()))
			if err := answer.UnmarshalJSON(w.Body.Bytes()); err != nil || answer.PartialSuccess().ErrorMessage() == "" {
				t.Errorf("JSON: %v %s", err, w.Body)
			}
		})
	}
}
