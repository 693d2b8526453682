package otlp

import (
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Points of one resource whose times are far apart, as of a device whose clock began in 1970, are stored, each at its time.
// target_info ends at the newest one and begins at most an hour before, so that no request makes millions of samples of it.
func TestTargetInfoOfDistantPoints(t *testing.T) {
	for name, apart := range map[string]time.Duration{
		"a second": time.Second, "59 minutes": 59 * time.Minute, "30 days": 30 * 24 * time.Hour, "340 days": 340 * 24 * time.Hour, "53 years": 53 * 365 * 24 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(Settings{})
			newest := time.UnixMilli(now)
			oldest := newest.Add(-apart)
			body := must(request(func(ms pmetric.MetricSlice) {
				for _, at := range []time.Time{oldest, newest} {
					sum(ms, pmetric.AggregationTemporalityCumulative, 0, at.UnixMilli(), 1)
					ms.At(ms.Len() - 1).SetName("m_" + map[bool]string{true: "new", false: "old"}[at.Equal(newest)])
				}
			}).MarshalProto())
			if w := r.post("application/x-protobuf", body); w.Code != 200 {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			points, infos := 0, 0
			for _, line := range r.lines() {
				if strings.Contains(line, "target_info") {
					infos++
				} else {
					points++
				}
			}
			want := 2 + int(min(apart, time.Hour-1)/(150*time.Second))
			if points != 2 || infos != want {
				t.Errorf("%d points and %d samples of target_info, want 2 and %d\n%s", points, infos, want, strings.Join(r.lines(), "\n"))
			}
		})
	}
}
