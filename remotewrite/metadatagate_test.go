package remotewrite

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/metrics"
)

// TestMetadataPassesTheGate: metadata passes the target's gate: it is not sent during a pause that the receiver asked
// for, and a pause in an answer to metadata applies to samples, too.
func TestMetadataPassesTheGate(t *testing.T) {
	for _, to := range []string{"samples", "metadata"} {
		t.Run("429 to "+to, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var limited time.Time
				early, since := 0, 0
				recv := &fakeReceiver{latency: 5 * time.Millisecond}
				recv.script = func(q fakeRequest) (client.Answer, bool) {
					switch {
					case !limited.IsZero() && time.Since(limited) < 5*time.Minute:
						early++
					case limited.IsZero() && q.n > 20 && (len(q.samples) > 0) == (to == "samples"):
						limited = time.Now()
						return client.Answer{Status: 429, RetryAfter: 5 * time.Minute}, true
					case !limited.IsZero():
						since++
					}
					return client.Answer{}, false
				}
				r := newRig(t, recv)
				reg := prometheus.NewRegistry()
				m, err := metrics.New(reg, "test", "http://h/")
				if err != nil {
					t.Fatal(err)
				}
				r.metrics = m
				r.log.meta.Type, r.log.meta.Help = "gauge", "help"
				r.start()
				for range 120 {
					r.round(10)
					time.Sleep(5 * time.Second)
				}
				r.drained(time.Minute)
				r.end()
				if limited.IsZero() || early > 0 || since == 0 {
					t.Errorf("limited at %s, %d requests too early, %d after it", limited, early, since)
				}
				if n := shown(t, reg, "prometheus_remote_storage_metadata_total"); n == 0 {
					t.Error("no metadata was sent")
				}
				if got, want := r.q.Status().Requests, uint64(recv.count()); got != want {
					t.Errorf("the status counts %d requests of %d", got, want)
				}
				r.verify()
			})
		})
	}
}
