package remotewrite

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/metrics"
)

// TestExemplarsAreSentAgain: after a kill while samples with exemplars are in flight, all samples that are sent again
// have their exemplars, whether or not they had arrived. An exemplar is never a control: in 2.0 it would be an empty
// write.
func TestExemplarsAreSentAgain(t *testing.T) {
	for _, message := range []string{config.MessageV1, config.MessageV2} {
		for n := range 8 {
			arrives, anyOrder, several := n&1 > 0, n&2 > 0, n&4 > 0
			t.Run(fmt.Sprintf("%s arrives=%t anyOrder=%t several=%t", message, arrives, anyOrder, several), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					to := &fakeReceiver{anyOrder: anyOrder, latency: time.Millisecond}
					r := newRig(t, to)
					r.cfg.SendExemplars, r.cfg.ProtobufMessage = true, message
					r.log.exemplars = true
					r.start()
					r.round(20)
					r.drained(time.Minute)
					if r.q.live.window.Load().shards[0].good.kind == exemplarPoint {
						t.Error("the control is an exemplar")
					}
					var lost atomic.Bool
					to.script = func(fakeRequest) (client.Answer, bool) {
						lost.Store(true)
						return client.Answer{Err: errDown}, !arrives
					}
					to.loseAnswer = func(fakeRequest) bool { return lost.Load() }
					if r.round(20); several {
						r.round(20)
					}
					r.until("a request", time.Minute, lost.Load)
					time.Sleep(100 * time.Millisecond)
					r.end()
					r.log.crash()
					to.script, to.loseAnswer = nil, nil
					if r.log.sp.High.Total == r.log.sp.Acked().Total {
						t.Fatal("nothing is suspect: the crash did not happen")
					}
					r.start()
					r.drained(time.Minute)
					r.end()
					checkExemplars(t, r, arrives)
				})
			})
		}
	}
}

// checkExemplars checks that the exemplar of each sample came in a request that was taken, or whose answer was lost.
func checkExemplars(t *testing.T, r *rig, arrives bool) {
	t.Helper()
	has := map[smp]bool{}
	for _, q := range r.to.log() {
		for _, x := range q.exemplars {
			has[x] = has[x] || q.status == 204 || arrives && q.status == 0
		}
	}
	missing := 0
	for _, e := range r.log.entries {
		for _, s := range e.Samples {
			if !has[smpOf(s)] {
				missing++
			}
		}
	}
	if missing > 0 {
		t.Errorf("the exemplars of %d samples are missing\n%s", missing, r.to.dump())
	}
}

// exemplarsHTTP delivers a log of 2.0 with an exemplar for each sample over HTTP. It returns how many exemplars came in
// accepted requests. answer gets the requests with samples; empty writes are accepted.
func exemplarsHTTP(t *testing.T, entry string, commits, series int, answer func(r *wired) int) (accepted int) {
	t.Helper()
	overHTTP(t, "protobuf_message: io.prometheus.write.v2.Request\n"+entry, func(m *memLog) {
		m.exemplars = true
		now := time.Now().UnixMilli()
		for n := range commits {
			var round []smp
			for i := range series {
				round = append(round, smp{fmt.Sprintf("m%02d", i+n*series), now + int64(n), 1})
			}
			m.append(round...)
		}
	}, func(_ int, r *wired, h http.Header) int {
		if len(r.series) > 0 {
			if status := answer(r); status != http.StatusNoContent {
				return status
			}
		}
		for i := range r.series {
			accepted += r.series[i].exemplars
		}
		r.confirm(h)
		return http.StatusNoContent
	})
	return accepted
}

// TestHalvesKeepExemplars: where a request is too large, its halves have the exemplars of their samples.
func TestHalvesKeepExemplars(t *testing.T) {
	got := exemplarsHTTP(t, "", 1, 15, func(r *wired) int {
		if len(r.series) > 2 {
			return http.StatusRequestEntityTooLarge
		}
		return http.StatusNoContent
	})
	if got != 15 {
		t.Errorf("%d exemplars came, want 15", got)
	}
}

// TestExemplarsAddUp: each exemplar comes in an accepted request with a sample of its series, or counts as failed.
func TestExemplarsAddUp(t *testing.T) {
	cases := map[string]func(r *rig){
		"a bad sample": func(r *rig) { r.to.poison = func(s smp) bool { return s.series == "m0003" } },
		"drop": func(r *rig) {
			r.cfg.Target.OnRefusal = config.RefusalDrop
			r.to.poison = func(s smp) bool { return s.series == "m0003" }
		},
		"held": func(r *rig) {
			r.to.refuseEmpty = true
			r.to.script = func(q fakeRequest) (client.Answer, bool) { return client.Answer{Status: 403, Text: "no"}, q.n < 5 }
		},
		"too old": func(r *rig) {
			r.cfg.Queue.SampleAgeLimit = model.Duration(time.Minute)
			begin := time.Now()
			r.to.script = func(fakeRequest) (client.Answer, bool) {
				return client.Answer{Status: 503, Date: time.Now()}, time.Since(begin) < 90*time.Second
			}
		},
	}
	for name, with := range cases {
		for _, message := range []string{config.MessageV1, config.MessageV2} {
			t.Run(name+" "+message, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, &fakeReceiver{})
					reg := prometheus.NewRegistry()
					var err error
					if r.metrics, err = metrics.New(reg, "test", "http://h/"); err != nil {
						t.Fatal(err)
					}
					r.cfg.SendExemplars, r.cfg.ProtobufMessage = true, message
					r.log.exemplars = true
					with(r)
					r.round(20)
					r.start()
					r.drained(time.Hour)
					r.end()
					came, taken := 0, 0
					for _, q := range r.to.log() {
						if q.status/100 == 2 {
							taken++
							came += len(q.exemplars)
						}
					}
					failed := failedExemplars(t, reg)
					if name == "too old" && taken > 1 { // one asks for the time
						t.Errorf("%d requests without a sample were accepted", taken)
					}
					if came+failed != 20 {
						t.Errorf("%d exemplars came and %d failed, of 20\n%s", came, failed, r.to.dump())
					}
				})
			})
		}
	}
}

// failedExemplars returns how many exemplars count as failed.
func failedExemplars(t *testing.T, reg *prometheus.Registry) int {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "prometheus_remote_storage_exemplars_failed_total" {
			return int(f.GetMetric()[0].GetCounter().GetValue())
		}
	}
	return 0
}

// TestExemplarsBehindWhatIsTooOld: after a cut the samples that are not too old keep their exemplars, but for one that was asked alone.
func TestExemplarsBehindWhatIsTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to, down := &fakeReceiver{latency: 5 * time.Millisecond, window: 30 * time.Minute, windowSays: "out of bounds"}, false
		to.script = func(fakeRequest) (client.Answer, bool) {
			to.newest = max(to.newest, time.Now().UnixMilli()) // of the other senders
			return client.Answer{Err: errDown}, down
		}
		r := newRig(t, to).timed()
		r.sender = &datedSender{fakeReceiver: to}
		r.cfg.SendExemplars, r.log.exemplars = true, true
		r.start()
		r.rounds(50, 5*time.Minute)
		to.set(func() { down = true })
		r.rounds(50, 40*time.Minute)
		to.set(func() { down = false })
		r.rounds(50, time.Minute)
		r.drained(time.Minute)
		r.end()
		has := map[smp]bool{}
		for _, q := range to.log() {
			for _, x := range q.exemplars {
				has[x] = has[x] || q.status == 204
			}
		}
		lacks := 0
		for s := range to.has {
			if !has[s] {
				lacks++
			}
		}
		if lacks > 1 {
			t.Errorf("%d samples came without their exemplars", lacks)
		}
	})
}
