package remotewrite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/internal/tools/tier"
	"hwsagent/remotewrite/client"
	"hwsagent/wal/queue"
)

// now makes the next round one of the present time.
func (r *rig) now() { r.time = time.Now().UnixMilli() - 1000 }

// rounds commits a round of n series every 15 seconds for so long.
func (r *rig) rounds(n int, d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(15 * time.Second) {
		r.now()
		r.round(n)
	}
}

// behind is the age of the newest sample that the receiver has of a series.
func (r *rig) behind(series string) time.Duration {
	r.to.mu.Lock()
	defer r.to.mu.Unlock()
	have := r.to.stored[series]
	if len(have) == 0 {
		return 24 * time.Hour
	}
	return time.Since(time.UnixMilli(have[len(have)-1].t))
}

// TestRotationsRefuseNothing: for an hour one of two or three backends, in strict rotation, refuses everything, in unknown words or in those
// of a database. No sample is given up.
func TestRotationsRefuseNothing(t *testing.T) {
	for _, backends := range []int{2, 3} {
		for _, words := range []string{"no", "label name too long"} {
			t.Run(fmt.Sprintf("%d backends/%s", backends, words), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					to, end, refused := &fakeReceiver{latency: 5 * time.Millisecond}, time.Now().Add(time.Hour), 0
					to.script = func(q fakeRequest) (client.Answer, bool) {
						is := q.n%backends == 1 && time.Now().Before(end)
						if is {
							refused++
						}
						return client.Answer{Status: 400, Text: words}, is
					}
					r := newRig(t, to).timed()
					r.start()
					r.rounds(50, time.Hour)
					r.drained(5 * time.Minute)
					r.end()
					if o := r.log.outcome(); o.GivenUp() != 0 || refused < 100 {
						t.Errorf("%d requests were refused, outcomes %+v", refused, o)
					}
					r.verify()
				})
			})
		}
	}
}

// TestFailuresLoseNothing: a receiver fails for an hour at every second request at random or at everything, or for five minutes at a
// third of the series. No sample is given up.
func TestFailuresLoseNothing(t *testing.T) {
	seed := rand.Uint64()
	third := func(s smp) bool { return s.series[len(s.series)-1]%3 == 0 }
	for name, fails := range map[string]struct {
		lasts time.Duration
		is    func(*rand.Rand, fakeRequest) bool
	}{
		"every second at random": {time.Hour, func(r *rand.Rand, _ fakeRequest) bool { return r.IntN(2) == 0 }},
		"all":                    {time.Hour, func(*rand.Rand, fakeRequest) bool { return true }},
		"a third of the series":  {5 * time.Minute, func(_ *rand.Rand, q fakeRequest) bool { return slices.ContainsFunc(q.samples, third) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Logf("seed %d", seed)
			synctest.Test(t, func(t *testing.T) {
				to, rnd, failed := &fakeReceiver{latency: 5 * time.Millisecond}, rand.New(rand.NewPCG(seed, 1)), 0
				begin, end := time.Now().Add(time.Minute), time.Now().Add(time.Minute+fails.lasts)
				to.script = func(q fakeRequest) (client.Answer, bool) {
					is := time.Now().After(begin) && time.Now().Before(end) && fails.is(rnd, q)
					if is {
						failed++
					}
					return client.Answer{Status: 500, Text: "oops"}, is
				}
				r := newRig(t, to).timed()
				r.start()
				r.rounds(60, time.Minute+fails.lasts)
				r.drained(time.Minute)
				r.end()
				if o := r.log.outcome(); o.GivenUp() != 0 || failed < 10 {
					t.Errorf("%d requests failed, outcomes %+v", failed, o)
				}
				r.verify()
			})
		})
	}
}

// datedSender adds the time to each answer.
type datedSender struct {
	*fakeReceiver
	ahead time.Duration // of this host's clock
}

func (d *datedSender) Send(ctx context.Context, req client.Request) client.Answer {
	a := d.fakeReceiver.Send(ctx, req)
	if a.Status != 0 {
		a.Date = time.Now().Add(d.ahead)
	}
	return a
}

// TestLongCutAtAReceiverWithoutAWindow: the network is away for three hours, the agent restarts meanwhile, and other senders go on. Only samples
// that are over an hour old then are given up, as too old, and fresh ones arrive within a minute.
func TestLongCutAtAReceiverWithoutAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const series = 500
		to := &fakeReceiver{latency: 20 * time.Millisecond, window: time.Hour, windowSays: "out of bounds"}
		down := false
		to.script = func(fakeRequest) (client.Answer, bool) {
			to.newest = max(to.newest, time.Now().UnixMilli()) // of the other senders
			return client.Answer{Err: errDown}, down
		}
		r := newRig(t, to).timed()
		r.sender = &datedSender{fakeReceiver: to}
		r.start()
		r.rounds(series, 5*time.Minute)
		to.set(func() { down = true })
		r.rounds(series, 90*time.Minute)
		r.end()
		r.start()
		r.rounds(series, 90*time.Minute)
		to.set(func() { down = false })
		back := time.Now()
		bound := back.Add(-time.Hour).UnixMilli()
		r.rounds(series, time.Minute)
		for i := range series {
			if late := r.behind(fmt.Sprintf("m%04d", i)); late > 20*time.Second {
				t.Fatalf("a minute after the cut series %d is %s behind; status %+v", i, late, r.q.Status())
			}
		}
		r.drained(time.Minute)
		r.end()
		old, lost := uint64(0), 0
		for _, e := range r.log.entries {
			for _, s := range e.Samples {
				switch {
				case to.has[smpOf(s)]:
				case s.T < bound+time.Minute.Milliseconds():
					old++
				default:
					lost++
				}
			}
		}
		o := r.log.outcome()
		if lost > 0 || old < 100*series || o.Dropped[queue.TooOld]+o.Dropped[queue.Unconfirmed] != old || o.Dropped[queue.Unconfirmed] > 2*series {
			t.Errorf("%d young samples are lost, %d old ones; outcomes %+v", lost, old, o)
		}
	})
}

// TestWideCut is the same with 10,000 samples a second, so that a window is larger than a request. Samples that are too old are given up window
// by window, and fresh ones arrive within five minutes. The test has a fifteenth of the samples and of the time; outside the nightly
// tier also a tenth of the series and of the size of a request.
func TestWideCut(t *testing.T) {
	series, atOnce := tier.Of(1000, 10_000), tier.Of(200, 2000)
	synctest.Test(t, func(t *testing.T) {
		to := &fakeReceiver{latency: 5 * time.Millisecond, window: time.Hour, windowSays: "out of bounds"}
		down := false
		to.script = func(q fakeRequest) (client.Answer, bool) {
			to.newest = max(to.newest, time.Now().UnixMilli()) // of the other senders
			if n := len(q.samples); n > atOnce {
				t.Errorf("a request has %d samples, at most %d are allowed", n, atOnce)
			}
			return client.Answer{Err: errDown}, down
		}
		r := newRig(t, to).timed()
		r.cfg.Queue.MaxSamplesPerSend = atOnce
		r.sender = &datedSender{fakeReceiver: to}
		r.start()
		r.rounds(series, 5*time.Minute)
		to.set(func() { down = true })
		r.rounds(series, 3*time.Hour)
		to.set(func() { down = false })
		back := time.Now()
		r.until("fresh samples", time.Minute, func() bool { return r.behind("m0000") < 50*time.Second })
		took := time.Since(back)
		o := r.log.outcome()
		t.Logf("%s; %d samples are too old", took, o.Dropped[queue.TooOld])
		if took > 20*time.Second {
			t.Errorf("fresh samples arrive after %s", took)
		}
		r.drained(time.Minute)
		r.end()
		o = r.log.outcome()
		if old := o.Dropped[queue.TooOld]; o.GivenUp() != old+o.Dropped[queue.Unconfirmed] || o.Dropped[queue.Unconfirmed] > 2*uint64(series) || old < 470*uint64(series) || old > 490*uint64(series) {
			t.Errorf("outcomes: %+v", o)
		}
	})
}

// TestKillInCatchUp: the agent is killed again and again while four shards catch up at a receiver without an out-of-order window. Nothing is
// lost, and nothing is in doubt at the end.
func TestKillInCatchUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to, down := &fakeReceiver{latency: 50 * time.Millisecond}, false
		to.script = func(fakeRequest) (client.Answer, bool) { return client.Answer{Err: errDown}, down }
		r := newRig(t, to).timed()
		r.cfg.Queue.MinShards, r.cfg.Queue.MaxSamplesPerSend = 4, 100
		r.start()
		r.rounds(400, time.Minute)
		to.set(func() { down = true })
		r.rounds(400, 10*time.Minute)
		to.set(func() { down = false })
		given, kills := uint64(0), 0
		for r.log.pending() > 800 && kills < 20 {
			n := to.count()
			r.until("requests", time.Minute, func() bool { return to.count() >= n+30 })
			before := r.log.outcome()
			given += before.GivenUp()
			r.stop() // what is under way is not waited for: the receiver may have it
			<-r.done
			r.log.crash()
			kills++
			r.start()
		}
		r.drained(time.Minute)
		r.end()
		if o := r.log.outcome(); given+o.GivenUp() != 0 || kills < 3 {
			t.Errorf("%d kills, %d samples given up, then %+v", kills, given, o)
		}
		r.everySampleIsStored()
	})
}

// TestHostStartsAnHourBehind: this host's clock is an hour slow, and a backlog waits. Nothing is dropped.
func TestHostStartsAnHourBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &fakeReceiver{latency: 5 * time.Millisecond}).timed()
		r.sender = &datedSender{r.to, time.Hour}
		for range 100 {
			r.round(50)
			time.Sleep(time.Second)
		}
		r.start()
		r.rounds(50, 5*time.Minute)
		r.drained(time.Minute)
		r.end()
		if o := r.log.outcome(); o.GivenUp() != 0 {
			t.Errorf("outcomes %+v", o)
		}
		r.verify()
	})
}

// TestDeniedBody: a proxy answers 403 to each request with one sample, for what it contains. The others arrive.
func TestDeniedBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &fakeReceiver{latency: 5 * time.Millisecond}).timed()
		var bad smp
		r.to.script = func(q fakeRequest) (client.Answer, bool) {
			return client.Answer{Status: 403, Text: "blocked by the firewall"}, slices.Contains(q.samples, bad)
		}
		r.start()
		r.rounds(50, time.Minute)
		r.now()
		r.to.set(func() { bad = smp{"m0007", r.time + 1000, float64(r.time+1000) + 7} })
		r.rounds(50, 20*time.Minute)
		r.drained(time.Minute)
		r.end()
		if o := r.log.outcome(); o.GivenUp() != 1 || o.Dropped[queue.Unconfirmed] != 1 {
			t.Errorf("outcomes %+v", o)
		}
		r.verify(bad)
	})
}

// TestFailsAtAPart: a receiver answers 500 to each request with a histogram, or with more than 100 series, also right after a restart. Good
// series are at most 30 s behind from the second minute on if the words or the size are the reason, otherwise from the eleventh.
func TestFailsAtAPart(t *testing.T) {
	histogram := func(q fakeRequest) bool {
		return slices.ContainsFunc(q.samples, func(s smp) bool { return isHistogram(s.series) })
	}
	for name, c := range map[string]struct {
		series int
		words  string
		fails  func(fakeRequest) bool
		from   time.Duration
	}{
		"histograms, known words":   {50, "native histograms are disabled", histogram, time.Minute},
		"histograms, unknown words": {50, "internal error", histogram, 11 * time.Minute},
		"size":                      {250, "internal error", func(q fakeRequest) bool { return q.series > 100 }, time.Minute},
		"a tenth of the size":       {2000, "internal error", func(q fakeRequest) bool { return q.series > 200 }, time.Minute},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restart %t", name, restart), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					to, failed := &fakeReceiver{latency: 5 * time.Millisecond}, 0
					to.script = func(q fakeRequest) (client.Answer, bool) {
						is := c.fails(q)
						if is {
							failed++
						}
						return client.Answer{Status: 500, Text: c.words}, is
					}
					r := newRig(t, to).timed()
					r.cfg.SendNativeHistograms = true
					r.start()
					began := time.Now()
					for i := range 20 * 12 {
						r.now()
						r.round(c.series)
						if c.fails(fakeRequest{samples: []smp{{series: "histogram1"}}}) {
							r.log.append(smp{"histogram1", r.time, 1}, smp{"histogram2", r.time, 2})
						}
						time.Sleep(5 * time.Second)
						if restart && i == 60 {
							r.end()
							r.log.crash()
							r.start()
							began = time.Now()
						}
						for s := range c.series {
							if late := r.behind(fmt.Sprintf("m%04d", s)); late > 30*time.Second && time.Since(began) > c.from {
								t.Fatalf("after %s series %d is %s behind; status %+v\n%s", time.Since(began), s, late, r.q.Status(), to.dump())
							}
						}
					}
					t.Logf("%d of %d requests failed", failed, to.count())
					if failed == 0 || strings.Contains(name, "size") && failed > 100 { // the size is learnt from two batches
						t.Errorf("%d requests failed", failed)
					}
				})
			})
		}
	}
}

// TestCutLongerThanTheWindow: a receiver takes samples of the last half hour, and other senders go on during a cut that is longer. What it
// would take arrives, and fresh samples do within a minute, also after a restart, although the control is too old.
func TestCutLongerThanTheWindow(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart %t", restart), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				to, down := &fakeReceiver{latency: 5 * time.Millisecond, window: 30 * time.Minute, windowSays: "out of bounds"}, false
				to.script = func(fakeRequest) (client.Answer, bool) {
					to.newest = max(to.newest, time.Now().UnixMilli()) // of the other senders
					return client.Answer{Err: errDown}, down
				}
				r := newRig(t, to).timed()
				r.sender = &datedSender{fakeReceiver: to}
				r.start()
				r.rounds(50, 5*time.Minute)
				to.set(func() { down = true })
				r.rounds(50, 40*time.Minute)
				if restart {
					r.end()
					r.start()
				}
				to.set(func() { down = false })
				bound := time.Now().Add(-29 * time.Minute).UnixMilli()
				r.rounds(50, time.Minute)
				if late := r.behind("m0000"); late > 20*time.Second {
					t.Errorf("a minute after the cut the newest sample is %s old; status %+v", late, r.q.Status())
				}
				r.drained(time.Minute)
				r.end()
				for _, e := range r.log.entries {
					for _, s := range e.Samples {
						if s.T > bound && !to.has[smpOf(s)] {
							t.Fatalf("%+v is lost; outcomes %+v", smpOf(s), r.log.outcome())
						}
					}
				}
			})
		})
	}
}

// TestSenderAhead: for half an hour a receiver calls every sample too old, because another sender is ahead. Nothing is given up.
func TestSenderAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to, ahead := &fakeReceiver{latency: 5 * time.Millisecond}, false
		to.script = func(fakeRequest) (client.Answer, bool) {
			return client.Answer{Status: 400, Text: "out of bounds"}, ahead
		}
		r := newRig(t, to).timed()
		r.sender = &datedSender{fakeReceiver: to}
		r.start()
		r.rounds(50, 5*time.Minute)
		to.set(func() { ahead = true })
		r.rounds(50, 30*time.Minute)
		to.set(func() { ahead = false })
		r.rounds(50, 5*time.Minute)
		r.drained(time.Minute)
		r.end()
		if o := r.log.outcome(); o.GivenUp() != 0 {
			t.Errorf("outcomes %+v", o)
		}
		r.verify()
	})
}

// TestWindowAfterASenderAhead: a sender was so far ahead that fresh samples were too old for ten minutes. Fresh samples arrive from the
// second hour on, although those that waited stay too old.
func TestWindowAfterASenderAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &fakeReceiver{latency: 5 * time.Millisecond, window: 10 * time.Minute, windowSays: "out of bounds"}
		to.script = func(fakeRequest) (client.Answer, bool) {
			to.newest = max(to.newest, time.Now().UnixMilli()) // of the other senders
			return client.Answer{}, false
		}
		r := newRig(t, to).timed()
		r.sender = &datedSender{fakeReceiver: to}
		r.start()
		r.rounds(50, 5*time.Minute)
		to.set(func() { to.newest = time.Now().Add(20 * time.Minute).UnixMilli() })
		r.rounds(50, 65*time.Minute)
		if late := r.behind("m0000"); late > 20*time.Second {
			t.Errorf("the newest sample is %s old; status %+v", late, r.q.Status())
		}
		r.drained(time.Minute)
		r.end()
	})
}
