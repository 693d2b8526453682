package remotewrite

import (
	"testing"

	"github.com/prometheus/prometheus/prompb"

	"hwsagent/receivers"
	"hwsagent/receivers/receivertest"
)

// TestRefusedSaysNothing: of a request that is refused as a whole, what it says about metric
// families is not kept either.
func TestRefusedSaysNothing(t *testing.T) {
	l := &receivertest.Log{}
	h := New(l.Gate("x", receivers.DefaultLimits()))
	about := func(help string) []byte {
		return marshal(t, &prompb.WriteRequest{Metadata: []prompb.MetricMetadata{{MetricFamilyName: "a", Help: help}}})
	}
	series := marshal(t, &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{Labels: pairs("__name__", "a"), Samples: []prompb.Sample{{Value: 1, Timestamp: 1}}}}})
	if w := send(h, "", about("right")); w.Code != 204 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w := send(h, "", append(about("wrong"), 0xff)); w.Code != 400 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	l.Fail(receivertest.ErrFull)
	if w := send(h, "", about("wrong")); w.Code != 503 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	l.Fail(nil)
	if w := send(h, "", series); w.Code != 204 || l.Samples()[0].Help != "right" {
		t.Errorf("%d %s: %+v", w.Code, w.Body, l.Samples())
	}
}
