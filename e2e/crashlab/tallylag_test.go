//go:build linux

package crashlab

import (
	"testing"
	"time"

	"github.com/prometheus/prometheus/prompb"

	"hwsagent/agent/demo/receiver"
)

// A sample that comes again says nothing about how long samples wait; one that comes late does.
func TestTallyMeasuresFirstArrivals(t *testing.T) {
	began := time.UnixMilli(1_000_000)
	c := newTally(t, 1, 1)
	arrive := func(number int, after time.Duration) {
		t.Helper()
		ts := prompb.TimeSeries{
			Labels:  []prompb.Label{{Name: "__name__", Value: receiver.CanaryName}, {Name: "job", Value: "canary0"}, {Name: "series", Value: "0"}},
			Samples: []prompb.Sample{{Timestamp: began.Add(time.Duration(number) * time.Second).UnixMilli(), Value: float64(number) + fraction(uint64(number), 0)}},
		}
		raw, err := (&prompb.WriteRequest{Timeseries: []prompb.TimeSeries{ts}}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		c.add(raw, len(raw), began.Add(after))
	}
	worst := func() time.Duration { _, worst := c.lag(began, began.Add(time.Hour)); return worst }
	arrive(1, 2*time.Second)
	arrive(2, 3*time.Second)
	arrive(1, 30*time.Second)
	if w := worst(); w != time.Second {
		t.Errorf("after a repetition the longest wait is %s, want 1s", w)
	}
	arrive(3, 40*time.Second)
	if w := worst(); w != 37*time.Second {
		t.Errorf("after a late sample the longest wait is %s, want 37s", w)
	}
	if _, again := c.total(); again != 1 {
		t.Errorf("%d samples came again, want 1", again)
	}
}
