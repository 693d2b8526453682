package otlp

import (
	"slices"
	"testing"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// TestSumsAreBounded: deltas whose buckets lie somewhere else each time do not add up to
// histograms without end. A sum loses resolution, and no observation.
func TestSumsAreBounded(t *testing.T) {
	r := newRig(Settings{})
	send := func(i int64, scale, offset int32, buckets int) {
		t.Helper()
		req := request(func(ms pmetric.MetricSlice) {
			exponential(ms, start, now+i, scale, slices.Repeat([]uint64{1}, buckets)...)
			ms.At(0).ExponentialHistogram().DataPoints().At(0).Positive().SetOffset(offset)
		})
		if w := r.post("application/x-protobuf", must(req.MarshalProto())); w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	const rounds, each = 50, 300
	for i := range int64(rounds) {
		send(i, 8, int32(1000*i), each)
	}
	var last uint64
	for _, s := range r.log.Samples() {
		if s.H == nil {
			continue
		}
		if n := len(s.H.PositiveBuckets); n > maxBuckets || s.H.Count != last+each || s.H.Validate() != nil {
			t.Fatalf("%d buckets, %d observations after %d, %v", n, s.H.Count, last, s.H.Validate())
		}
		last = s.H.Count
	}
	if last != rounds*each {
		t.Errorf("%d observations are in the sum, want %d", last, rounds*each)
	}
	send(rounds, -4, 0, 2*maxBuckets) // as coarse as can be
	if n := r.gate.Counts().RefusedSamples["invalid_sample"]; n != 1 {
		t.Errorf("%d samples are refused, want 1", n)
	}
	send(rounds+1, 8, 0, each)
	if all := r.log.Samples(); all[len(all)-1].H == nil && all[len(all)-2].H == nil {
		t.Error("what came after a refusal is not added")
	}
}
