package remotewrite

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/metrics"
)

// TestHeldSeconds: hwsagent_target_held_seconds_total is how long the target was held, also while it holds no samples.
func TestHeldSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := false
		r := newRig(t, &fakeReceiver{latency: time.Millisecond, script: func(fakeRequest) (client.Answer, bool) {
			return client.Answer{Status: 403, Text: "no"}, held
		}}).timed()
		reg := prometheus.NewRegistry()
		m, err := metrics.New(reg, "test", "")
		if err != nil {
			t.Fatal(err)
		}
		r.metrics = m
		r.start()
		rounds := func(n int) {
			for range n {
				r.round(10)
				time.Sleep(5 * time.Second)
			}
		}
		rounds(3)
		r.to.set(func() { held = true })
		r.round(10)
		r.until("held", time.Minute, func() bool { return r.q.Status().State == StateHeld })
		at := time.Now()
		rounds(720)
		if st := r.q.Status(); st.State != StateHeld {
			t.Fatalf("%+v", st)
		}
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "hwsagent_target_held_seconds_total" {
				if got, want := f.GetMetric()[0].GetCounter().GetValue(), time.Since(at).Seconds(); got < want*0.95 {
					t.Errorf("%s is %.0f after %.0f s", f.GetName(), got, want)
				}
			}
		}
		r.end()
	})
}
