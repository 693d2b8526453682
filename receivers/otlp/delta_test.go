package otlp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"hwsagent/receivers"
)

// series are the lines of a rig, without target_info and labels that all have.
func (r *rig) series() (all []string) {
	for _, l := range r.lines() {
		if !strings.Contains(l, "target_info") {
			all = append(all, strings.Replace(l, `, instance="i1", job="shop"}`, "}", 1))
		}
	}
	return all
}

func (r *rig) send(t *testing.T, fill func(pmetric.MetricSlice)) {
	t.Helper()
	if w := r.post("application/x-protobuf", must(request(fill).MarshalProto())); w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
}

// A point that says that there is no value ends a series for now; what comes after it goes on
// from where the deltas were.
func TestDeltasGoOnAfterNoValue(t *testing.T) {
	r := newRig(Settings{})
	for i, flag := range []bool{false, true, false} {
		r.send(t, func(ms pmetric.MetricSlice) {
			from, to := now+int64(i)*1000, now+int64(i+1)*1000
			sum(ms, pmetric.AggregationTemporalityDelta, from, to, 5)
			exponential(ms, from, to, 1, 1, 2)
			if flag {
				none := pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)
				ms.At(0).Sum().DataPoints().At(0).SetFlags(none)
				ms.At(1).ExponentialHistogram().DataPoints().At(0).SetFlags(none)
			}
		})
	}
	want := []string{
		fmt.Sprintf(`{__name__="requests_total", code="200"} 5 @%d+1000`, now),
		fmt.Sprintf(`{__name__="latency_seconds"} {count:3, sum:3, (1,1.414213562373095]:1, (1.414213562373095,2]:2} @%d+1000`, now),
		fmt.Sprintf(`{__name__="requests_total", code="200"} NaN @%d+2000`, now+1000),
		fmt.Sprintf(`{__name__="latency_seconds"} {count:9218868437227405314, sum:NaN, (1,1.414213562373095]:1, (1.414213562373095,2]:2} @%d+2000`, now+1000),
		fmt.Sprintf(`{__name__="requests_total", code="200"} 10 @%d+3000`, now),
		fmt.Sprintf(`{__name__="latency_seconds"} {count:6, sum:6, (1,1.414213562373095]:2, (1.414213562373095,2]:4} @%d+3000`, now),
	}
	if diff := cmp.Diff(want, r.series()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A delta that began before its series did is another's, as for Prometheus; the start of a
// series is that of its first delta.
func TestDeltasThatBeganBefore(t *testing.T) {
	r := newRig(Settings{})
	for _, span := range [][2]int64{{0, 1000}, {1000, 2000}, {500, 3000}, {-1000, 4000}, {4000, 5000}} {
		r.send(t, func(ms pmetric.MetricSlice) {
			sum(ms, pmetric.AggregationTemporalityDelta, now+span[0], now+span[1], 1)
		})
	}
	r.send(t, func(ms pmetric.MetricSlice) {
		for i, from := range []int64{0, now} {
			sum(ms, pmetric.AggregationTemporalityDelta, from, now+int64(i+1)*1000, 1)
			ms.At(i).SetName("startless")
		}
	})
	var want []string
	for i, to := range []int64{1000, 2000, 3000, 5000} {
		want = append(want, fmt.Sprintf(`{__name__="requests_total", code="200"} %d @%d+%d`, i+1, now, to))
	}
	want = append(want, `{__name__="startless_total", code="200"} 1 @0+1000`, `{__name__="startless_total", code="200"} 2 @0+2000`)
	if diff := cmp.Diff(want, r.series()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if n := r.gate.Counts().RefusedSamples[receivers.OldDelta]; n != 1 {
		t.Errorf("%d deltas count as old, want 1", n)
	}
}
