package remotewrite

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/metrics"
	"hwsagent/wal/queue"
)

func failedSamples(t *testing.T, reg *prometheus.Registry) (n uint64) {
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "prometheus_remote_storage_samples_failed_total" {
			n = uint64(f.GetMetric()[0].GetCounter().GetValue())
		}
	}
	return n
}

// TestMutedCountedOnceInOutage: while a target with muted series is away, its window is read again and again. Each dropped
// sample counts once in prometheus_remote_storage_samples_failed_total and in the status of muted series.
func TestMutedCountedOnceInOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bad = 50
		to := &fakeReceiver{latency: 10 * time.Millisecond, says: limitWords}
		to.poison = func(s smp) bool { return strings.HasPrefix(s.series, "bad") }
		down := false
		to.script = func(fakeRequest) (client.Answer, bool) { return client.Answer{Err: errDown}, down }
		r := newRig(t, to)
		reg := prometheus.NewRegistry()
		m, err := metrics.New(reg, "test", "")
		if err != nil {
			t.Fatal(err)
		}
		r.metrics = m
		r.start()
		round := func() {
			r.time += 1000
			var ss []smp
			for i := range 10 {
				ss = append(ss, smp{fmt.Sprintf("good%d", i), r.time, float64(r.time)})
			}
			for i := range bad {
				ss = append(ss, smp{fmt.Sprintf("bad%d", i), r.time, float64(r.time)})
			}
			r.log.append(ss...)
			time.Sleep(15 * time.Second)
		}
		for range 60 {
			round()
		}
		if st := r.q.Status().Muted; len(st) != 1 || st[0].Series != bad {
			t.Fatalf("status %+v", st)
		}
		rejected := func() uint64 { return r.log.outcome().Dropped[queue.Rejected] }
		if failed, want := failedSamples(t, reg), rejected(); failed != want {
			t.Errorf("before the outage: %d count as failed, %d as rejected", failed, want)
		}
		before := r.q.Status().Muted[0].Samples
		at := rejected()
		to.set(func() { down = true })
		for range 4 * 60 * 2 { // two hours
			round()
		}
		to.set(func() { down = false })
		r.until("all is delivered", 3*time.Hour, func() bool { return r.log.pending() == 0 })
		time.Sleep(10 * time.Second)
		// An hour after the last sample of them the queue forgets muted series: it judges the first round anew.
		if failed, want := failedSamples(t, reg), rejected(); failed > want+bad {
			t.Errorf("prometheus_remote_storage_samples_failed_total is %d, and %d samples are rejected in the ledger", failed, want)
		}
		if st := r.q.Status().Muted; len(st) == 1 && st[0].Samples-before > rejected()-at {
			t.Errorf("the status says that %d samples were dropped meanwhile, the ledger %d", st[0].Samples-before, rejected()-at)
		}
		r.end()
	})
}
