package otlp

import (
	"runtime"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"hwsagent/receivers"
)

// To look for the metric that is to blame costs no more than the request may: target_info over
// sixty years is not made for each.
func TestLookingForTheBadMetricIsBounded(t *testing.T) {
	r := newRig(Settings{})
	req := request(func(ms pmetric.MetricSlice) {
		exponential(ms, start, now, -9, 1, 2)
		ms.At(0).ExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		for range 3 {
			sum(ms, pmetric.AggregationTemporalityDelta, 0, 1000, 1)
			long := ms.At(ms.Len() - 1).Sum().DataPoints().AppendEmpty()
			long.SetTimestamp(at(1 << 41))
		}
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	w := r.post("application/x-protobuf", must(req.MarshalProto()))
	runtime.ReadMemStats(&after)
	if w.Code != 413 || r.gate.Counts().RefusedRequests[receivers.TooManySamples] != 1 || len(r.lines()) > 0 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 512<<20 { // 200,000 samples are within the bounds
		t.Errorf("it took %d MB and %s", took>>20, time.Since(began))
	}
}
