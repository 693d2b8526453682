package otlp

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// TestExponentialBucketsFollowAModel: whatever the scale, the offset and the empty buckets of a point, each observation is
// counted in the bucket of Prometheus that holds the bucket of OTLP.
func TestExponentialBucketsFollowAModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range 900 {
		scale, offset := int32(r.IntN(25)-4), int32(r.IntN(4000)-2000)
		counts := make([]uint64, r.IntN(40))
		for k := range counts {
			if r.IntN(3) > 0 {
				counts[k] = uint64(r.IntN(6))
			}
		}
		if i == 0 {
			scale, offset, counts = 10, -17, []uint64{0, 5, 0, 5, 5}
		}
		rig := newRig(Settings{})
		w := rig.post("application/x-protobuf", must(request(func(ms pmetric.MetricSlice) {
			exponential(ms, start, now, scale, counts...)
			e := ms.At(0).ExponentialHistogram()
			e.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			e.DataPoints().At(0).Positive().SetOffset(offset)
		}).MarshalProto()))
		if w.Code != 200 || w.Body.Len() > 0 {
			t.Fatalf("scale %d, offset %d, %v: %d %s", scale, offset, counts, w.Code, w.Body)
		}
		want := map[int32]int64{}
		for k, n := range counts {
			index := offset + int32(k)
			for s := scale; s > 8; s-- {
				index = (index - (index&1+2)%2) / 2 // a bucket of the scale below holds two, rounded down
			}
			if n > 0 {
				want[index+1] += int64(n)
			}
		}
		got := map[int32]int64{}
		h := rig.log.Samples()[0].H
		for it := h.PositiveBucketIterator(); it.Next(); {
			if b := it.At(); b.Count > 0 {
				got[b.Index] = int64(b.Count)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || h.Schema != min(scale, 8) {
			t.Errorf("scale %d, offset %d, %v: schema %d, -want +got:\n%s", scale, offset, counts, h.Schema, diff)
		}
	}
}
