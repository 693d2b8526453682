package otlp

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"hwsagent/receivers"
	"hwsagent/receivers/receivertest"
)

// TestDroppedDeltasTakeNoRoom: a delta that metric_relabel_configs drop does not count toward active_series, and is not refused.
func TestDroppedDeltasTakeNoRoom(t *testing.T) {
	l := &receivertest.Log{}
	limits := receivers.DefaultLimits()
	limits.ActiveSeries = 10
	g := l.Gate("otlp", limits, receivertest.Rules(t, `[{source_labels: [__name__], regex: "(noise_.*|target_info)", action: drop}]`)...)
	v := New(Settings{}, 10)
	r := &rig{l, g, v.HTTP(g), v.GRPC(g)}
	req := request(func(ms pmetric.MetricSlice) {
		for i := range 20 {
			sum(ms, pmetric.AggregationTemporalityDelta, start, now, 1)
			ms.At(i).SetName(fmt.Sprintf("noise_%d", i))
		}
		sum(ms, pmetric.AggregationTemporalityDelta, start, now, 7)
	})
	r.post("application/x-protobuf", must(req.MarshalProto()))
	if got := l.Samples(); len(got) != 1 || got[0].V != 7 {
		t.Errorf("in the log are %v, want the one delta that the rules keep", got)
	}
	c := g.Counts()
	if c.RefusedSamples[receivers.NewSeries] != 0 || c.RefusedSamples[receivers.Relabelled] != 21 { // target_info, too
		t.Errorf("refused %v, active %d, want 21 relabelled", c.RefusedSamples, c.ActiveSeries)
	}
}

// TestRefusedDeltaIsNotSummed: a delta that is answered as refused has no sum, so the next one does not include it.
func TestRefusedDeltaIsNotSummed(t *testing.T) {
	l := &receivertest.Log{}
	limits := receivers.DefaultLimits()
	limits.ActiveSeries = 1
	g := l.Gate("otlp", limits, receivertest.Rules(t, `[{source_labels: [__name__], regex: "target_info", action: drop}]`)...)
	v := New(Settings{}, 10)
	r := &rig{l, g, v.HTTP(g), v.GRPC(g)}
	one := func(name string, from, to, n int64) {
		req := request(func(ms pmetric.MetricSlice) {
			sum(ms, pmetric.AggregationTemporalityDelta, from, to, n)
			ms.At(0).SetName(name)
		})
		r.post("application/x-protobuf", must(req.MarshalProto()))
	}
	one("a", start, now, 1)
	one("b", start, now, 5)
	if len(v.deltas.streams) != 1 {
		t.Errorf("%d sums are kept, though one series is stored", len(v.deltas.streams))
	}
}

// TestNaNDelta: one delta that is not a number is refused, and does not make all later sums of its series NaN.
func TestNaNDelta(t *testing.T) {
	r := newRig(Settings{})
	for i, v := range []float64{5, math.NaN(), 7} {
		req := request(func(ms pmetric.MetricSlice) {
			sum(ms, pmetric.AggregationTemporalityDelta, start+int64(i)*1000, start+int64(i+1)*1000, 0)
			ms.At(0).Sum().DataPoints().At(0).SetDoubleValue(v)
		})
		r.post("application/x-protobuf", must(req.MarshalProto()))
	}
	var last float64
	for _, s := range r.log.Samples() {
		if s.V != 1 { // target_info
			last = s.V
		}
	}
	if last != 12 {
		t.Errorf("after deltas 5, NaN, 7 the sum is %v, want 12 and one refused sample: %v", last, r.gate.Counts().RefusedSamples)
	}
}

// TestNegativeDelta: a negative delta of a monotonic sum is refused, because the sum would look like a counter that begins again.
func TestNegativeDelta(t *testing.T) {
	r := newRig(Settings{})
	for i, v := range []int64{5, -3, 4} {
		r.post("application/x-protobuf", must(request(func(ms pmetric.MetricSlice) {
			sum(ms, pmetric.AggregationTemporalityDelta, now+int64(i)*1000, now+int64(i+1)*1000, v)
		}).MarshalProto()))
	}
	var got []float64
	for _, s := range r.log.Samples() {
		if s.Family == "requests_total" {
			got = append(got, s.V)
		}
	}
	if diff := cmp.Diff([]float64{5, 9}, got); diff != "" || r.gate.Counts().RefusedSamples[receivers.InvalidSample] != 1 {
		t.Errorf("-want +got:\n%s\n%v", diff, r.gate.Counts().RefusedSamples)
	}
}
