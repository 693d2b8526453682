package remotewrite

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/internal/tools/tier"
	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/metrics"
	"hwsagent/wal/queue"
)

// TestHoldEndsByItselfWithoutEmptyWrites: a receiver refuses empty writes, has one poison sample, and answers 401 for a
// while: the hold ends without help, and one sample is lost.
func TestHoldEndsByItselfWithoutEmptyWrites(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		for _, from := range []time.Duration{0, 3 * time.Second, 10 * time.Second, 20 * time.Second, 36 * time.Second} {
			for _, poisoned := range []int{0, 5, 25} { // round
				for _, series := range []int{1, 100} {
					if series == 1 && poisoned == 0 {
						continue // the target never took a sample, and only this series waits: it stays held
					}
					t.Run(fmt.Sprintf("keepsGood=%v/401 from %v/poison in round %d of %d", keeps, from, poisoned, series), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							begin := time.Now()
							denied := 0
							to := &fakeReceiver{refuseEmpty: true, keepsGood: keeps, latency: time.Millisecond}
							to.script = func(fakeRequest) (client.Answer, bool) {
								if d := time.Since(begin); d >= from && d < from+45*time.Second {
									denied++
									return client.Answer{Status: 401, Text: "expired"}, true
								}
								return client.Answer{}, false
							}
							r := newRig(t, to)
							bad := smp{fmt.Sprintf("m%04d", series/2), r.time + int64(poisoned+1)*1000, 0}
							bad.v = float64(bad.t) + float64(series/2)
							to.poison = func(s smp) bool { return s == bad }
							r.timed()
							r.start()
							for range 40 {
								r.round(series)
								time.Sleep(time.Second)
							}
							r.drained(10 * time.Minute)
							r.end()
							if denied == 0 {
								t.Error("nothing was denied")
							}
							o := r.log.outcome()
							if keeps && o.Dropped[queue.Unconfirmed] > 0 {
								// Which of the older samples was bad cannot be known there.
								r.verify(bad)
								return
							}
							if o.GivenUp() != 1 || o.Dropped[queue.Rejected] != 1 {
								t.Errorf("outcomes %+v, want one rejected\n%s", o, r.to.dump())
							}
							r.verify(bad)
						})
					})
				}
			}
		}
	}
}

// TestRouteBreaksWhileIsolating: a proxy answers everything with 400 for a while, during the division of a refused
// batch: the samples that it refuses do not count as bad.
func TestRouteBreaksWhileIsolating(t *testing.T) {
	for _, empties := range []bool{true, false} {
		for first := range 16 {
			t.Run(fmt.Sprintf("empty writes=%v/from request %d", empties, first), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var broken time.Time
					to := &fakeReceiver{refuseEmpty: !empties}
					to.script = func(q fakeRequest) (client.Answer, bool) {
						if broken.IsZero() && q.n >= first {
							broken = time.Now()
						}
						if !broken.IsZero() && time.Since(broken) < 30*time.Second {
							return client.Answer{Status: 400, Text: "<html>No required SSL certificate was sent</html>"}, true
						}
						return client.Answer{}, false
					}
					r := newRig(t, to)
					bad := smp{"m0300", r.time + 1000, float64(r.time+1000) + 300}
					to.poison = func(s smp) bool { return s == bad }
					r.round(500)
					r.round(500)
					r.start()
					r.drained(30 * time.Minute) // a refused control makes the target contradictory, so the bad sample must fail for ten minutes
					r.end()
					if broken.IsZero() {
						t.Skip("isolation was over before")
					}
					if o := r.log.outcome(); o.GivenUp() != 1 {
						t.Errorf("outcomes %+v, want one lost\n%s", o, r.to.dump())
					}
					r.verify(bad)
				})
			})
		}
	}
}

// TestRouteBreaksForANewShard: the same at a shard that has delivered no sample yet, and so has no control, where empty
// writes are refused: the evidence of another shard counts.
func TestRouteBreaksForANewShard(t *testing.T) {
	for _, after := range []time.Duration{0, 20 * time.Millisecond, 300 * time.Millisecond, time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				broken, refused := false, 0
				to := &fakeReceiver{refuseEmpty: true, latency: 20 * time.Millisecond}
				to.script = func(fakeRequest) (client.Answer, bool) {
					if broken {
						refused++
					}
					return client.Answer{Status: 400, Text: "No required SSL certificate was sent"}, broken
				}
				r := newRig(t, to)
				r.cfg.Queue.MinShards, r.cfg.Queue.MaxShards = 2, 2
				r.start()
				one := func() smp { r.time += 1000; return smp{"first", r.time, float64(r.time)} }
				for range 5 {
					r.log.append(one())
					r.drained(time.Minute)
				}
				to.set(func() { broken = true })
				var others []smp
				for n := range 8 { // some belong to the other shard
					others = append(others, smp{fmt.Sprintf("other%d", n), r.time, 1})
				}
				r.log.append(others...)
				time.Sleep(after)
				r.log.append(one(), one())
				time.Sleep(3 * time.Second)
				to.set(func() { broken = false })
				r.drained(10 * time.Minute)
				r.end()
				if refused < 3 {
					t.Errorf("%d requests were refused", refused)
				}
				r.verify()
				if o := r.log.outcome(); o.GivenUp() != 0 {
					t.Errorf("outcomes %+v\n%s", o, r.to.dump())
				}
			})
		})
	}
}

// SIGTERM in an outage, with requests that hang: out in time, nothing lost.
func TestStopInOutage(t *testing.T) {
	for name, script := range map[string]func(fakeRequest) (client.Answer, bool){
		"refused": func(fakeRequest) (client.Answer, bool) { return client.Answer{Err: errDown}, true },
		"held":    func(fakeRequest) (client.Answer, bool) { return client.Answer{Status: 403}, true },
		"overloaded": func(fakeRequest) (client.Answer, bool) {
			return client.Answer{Status: 429, RetryAfter: 5 * time.Minute}, true
		},
		"hanging": nil,
	} {
		for _, after := range []time.Duration{0, time.Second, 5 * time.Second, 45 * time.Second, 10 * time.Minute} {
			t.Run(fmt.Sprintf("%s after %v", name, after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					to := &fakeReceiver{script: script}
					if script == nil {
						to.latency = 30 * time.Second
					}
					r := newRig(t, to)
					r.start()
					for range 20 {
						r.round(1000)
					}
					time.Sleep(after)
					if d := r.end(); d >= 2*time.Second {
						t.Errorf("Run returned after %v", d)
					}
					if script != nil && r.log.outcome().Sum() != 0 {
						t.Errorf("outcomes %+v", r.log.outcome())
					}
					// The next process delivers everything.
					r.to.script, r.to.latency = nil, 0
					r.start()
					r.drained(time.Minute)
					r.end()
					r.verify()
				})
			})
		}
	}
}

// TestLongOutageHoldsNothing: while a target is down for long, no samples are held in memory; then it comes back.
func TestLongOutageHoldsNothing(t *testing.T) {
	for name, a := range map[string]client.Answer{
		"network": {Err: errDown}, "5xx": {Status: 503}, "held": {Status: 401},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				down := 12 * time.Hour
				switch {
				case testing.Short():
					down = 2 * time.Hour
				case tier.Nightly():
					down = 72 * time.Hour
				}
				r := newRig(t, &fakeReceiver{script: func(fakeRequest) (client.Answer, bool) { return a, time.Since(begin) < down }})
				r.start()
				held, looks := 0, 0
				for time.Since(begin) < down {
					r.round(50)
					for range 23 { // looks between rounds, at no multiple of a retry's gap
						time.Sleep(13 * time.Second)
						if time.Since(begin) > 10*time.Minute {
							looks++
							if r.q.live.window.Load() != nil {
								held++
							}
						}
					}
					if w := r.q.Status().Window; w > 11_000 {
						t.Fatalf("%d samples in the window", w)
					}
				}
				if held*4 > looks {
					t.Errorf("samples were held at %d of %d looks", held, looks)
				}
				time.Sleep(time.Until(begin.Add(down)))
				r.drained(3 * time.Minute)
				r.end()
				r.verify()
			})
		})
	}
}

// TestShardWithoutSuccessIsHelpedByOthers: one shard has delivered all samples that the window has room for, and waits
// for another one, which has found a bad sample and delivered none yet. The deliveries of the first shard show that the
// receiver is reachable; empty writes cannot show it here, and no shard delivers new samples.
func TestShardWithoutSuccessIsHelpedByOthers(t *testing.T) {
	for _, which := range []uint64{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			to := &fakeReceiver{refuseEmpty: true, latency: 37 * time.Millisecond}
			r := newRig(t, to)
			r.cfg.Queue.MinShards, r.cfg.Queue.MaxShards = 2, 2
			r.cfg.Queue.Capacity = 25 // that is delivered before the bad one is found
			for range 200 {
				r.round(40)
			}
			var bad smp // the first of its shard
			for _, s := range slices.Backward(r.log.entries[0].Samples) {
				if newSeriesCache(labels.EmptyLabels(), nil).get(s.Series).hash%2 == which {
					bad = smpOf(s)
				}
			}
			to.poison = func(s smp) bool { return s == bad }
			r.start()
			r.drained(10 * time.Minute)
			r.end()
			r.verify(bad)
			if o := r.log.outcome(); o.GivenUp() != 1 {
				t.Errorf("outcomes %+v", o)
			}
		})
	}
}

// TestRetryAfterWhileHeld: a Retry-After counts for a held target, too.
func TestRetryAfterWhileHeld(t *testing.T) {
	for _, before := range []int{400, 403, 302} {
		for _, then := range []int{429, 503} {
			t.Run(fmt.Sprint(before, then), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a := client.Answer{Status: 204}
					r := newRig(t, &fakeReceiver{latency: time.Millisecond, script: func(fakeRequest) (client.Answer, bool) { return a, a.Status != 204 }})
					r.start()
					for range 3 {
						r.round(10)
						time.Sleep(5 * time.Second)
					}
					r.to.set(func() { a = client.Answer{Status: before, Text: "no"} })
					r.round(10)
					r.until("held", time.Minute, func() bool { return r.q.Status().State == StateHeld })
					r.to.set(func() { a = client.Answer{Status: then, RetryAfter: 5 * time.Minute} })
					n := r.to.count()
					r.until("asked to wait", 5*time.Minute, func() bool { return r.to.count() > n })
					n = r.to.count()
					time.Sleep(5*time.Minute - time.Second)
					if got := r.to.count() - n; got > 0 {
						t.Errorf("%d requests in the five minutes in which the receiver wanted none", got)
					}
					r.end()
				})
			})
		}
	}
}

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
