package remotewrite

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/split"
	"hwsagent/wal/queue"
)

// seriesLimit is a case of a receiver that always refuses some series, as one does that has reached a limit of series.
type seriesLimit struct {
	percent uint32 // of the series
	words   string // of a refusal
	keeps   bool   // the receiver keeps the good part of a request that it refuses
	backlog int    // rounds that wait when the agent starts
}

func (c seriesLimit) String() string {
	return fmt.Sprintf("%d percent/%s/keeps=%t/%d rounds wait", c.percent, c.words, c.keeps, c.backlog)
}

// bad reports whether the receiver refuses a series. The refused series are spread evenly.
func (c seriesLimit) bad(series string) bool {
	h := fnv.New32a()
	h.Write([]byte(series))
	return h.Sum32()%100 < c.percent
}

// TestSeriesRefusedForEver: a receiver that always refuses some series soon gets every sample of the others, whatever
// its words are and whatever it does with the good part of a request, at the cost of few requests.
func TestSeriesRefusedForEver(t *testing.T) {
	cells := 0
	for _, percent := range []uint32{1, 5, 30} {
		for _, words := range []string{"bad request", "per-user series limit of 1400 exceeded", "label name too long"} {
			for _, keeps := range []bool{false, true} {
				for _, backlog := range []int{0, 10} {
					if cells++; sparse(cells) {
						continue
					}
					c := seriesLimit{percent, words, keeps, backlog}
					t.Run(c.String(), func(t *testing.T) { synctest.Test(t, c.run) })
				}
			}
		}
	}
}

func (c seriesLimit) run(t *testing.T) {
	const (
		series = 2000
		rounds = 40
		every  = 15 * time.Second
	)
	to := &fakeReceiver{latency: 50 * time.Millisecond, keepsGood: c.keeps, keepsGood2: c.keeps, says: c.words}
	to.poison = func(s smp) bool { return c.bad(s.series) }
	r := newRig(t, to).timed()
	for range c.backlog {
		r.round(series)
	}
	r.start()
	before := 0
	for i := range rounds - c.backlog {
		if i == rounds/2 {
			before = to.count()
		}
		r.round(series)
		time.Sleep(every)
	}
	extra := float64(to.count()-before)/float64(rounds/2-c.backlog) - 1
	pending := r.log.pending()
	r.drained(time.Hour)
	before = to.count()
	for range rounds {
		r.round(series)
		time.Sleep(every)
	}
	later := float64(to.count()-before)/rounds - 1
	r.end()
	const all = 2 * rounds
	good := 0
	for i := range series {
		if !c.bad(fmt.Sprintf("m%04d", i)) {
			good += all
		}
	}
	bad := uint64(series*all - good)
	o := r.log.outcome()
	t.Logf("%.1f extra requests a round in the second half, %d samples wait; %.1f after an hour; outcomes %+v", extra, pending, later, o)
	if len(to.has) != good {
		t.Errorf("%d of %d good samples are stored; outcomes %+v", len(to.has), good, o)
	}
	if o.Delivered != uint64(good) || o.Dropped[queue.Rejected] != bad {
		t.Errorf("outcomes %+v for %d good samples and %d bad ones", o, good, bad)
	}
	if pending > 0 {
		t.Errorf("%d samples wait after ten minutes", pending)
	}
	// A quarter of the series is sent alone in each round, up to 64, in any number of shards; and there is a proof.
	most := min(10+float64(bad)/all/4, 94)
	if extra > most && c.backlog == 0 {
		t.Errorf("%.1f extra requests a round, want at most %.0f", extra, most)
	}
	if later > most {
		t.Errorf("%.1f extra requests a round once all is delivered, want at most %.0f", later, most)
	}
}

// TestRefusedSamplesAreNoRefusedSeries: samples that are refused for their own fault, not for their series', do not
// cost good samples of their series.
func TestRefusedSamplesAreNoRefusedSeries(t *testing.T) {
	for _, backlog := range []bool{false, true} {
		for _, percent := range []uint32{1, 5} {
			t.Run(fmt.Sprintf("backlog=%t/%d percent", backlog, percent), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const series, rounds = 1000, 20
					to := &fakeReceiver{latency: 5 * time.Millisecond, says: "bad request"}
					bad := func(s smp) bool { return seriesLimit{percent: percent}.bad(fmt.Sprint(s.series, s.t)) }
					to.poison = bad
					r := newRig(t, to).timed()
					good := 0
					for i := range rounds {
						if i == rounds/2 && backlog {
							r.start()
						} else if i == 0 && !backlog {
							r.start()
						}
						r.round(series)
						if i >= rounds/2 || !backlog {
							time.Sleep(15 * time.Second)
						}
					}
					r.drained(time.Hour)
					r.end()
					for _, e := range r.log.entries {
						for _, s := range e.Samples {
							if !bad(smpOf(s)) {
								good++
							}
						}
					}
					if o := r.log.outcome(); len(to.has) != good || o.Delivered != uint64(good) {
						t.Errorf("%d of %d good samples are stored, outcomes %+v", len(to.has), good, o)
					}
					t.Logf("%d requests, outcomes %+v", to.count(), r.log.outcome())
				})
			})
		}
	}
}

// TestLimitReachedByManyNewSeries: a receiver of at most 1,000 series gets 100,000 new ones. The others arrive in time, nothing else is lost,
// and from the second minute on the refused series cost two requests a minute.
func TestLimitReachedByManyNewSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const (
			known, added = 500, 100_000
			limit        = 1000
			before       = 5
			rounds       = 20
		)
		to := &fakeReceiver{latency: 20 * time.Millisecond, says: "per-user series limit of 1000 exceeded"}
		active := make(map[string]bool)
		to.poison = func(s smp) bool {
			if !active[s.series] && len(active) < limit {
				active[s.series] = true
			}
			return !active[s.series]
		}
		r := newRig(t, to).timed()
		r.start()
		r.rounds(known, before*15*time.Second)
		at, late := 0, time.Duration(0)
		for i := range rounds {
			if i == 4 {
				at = to.count()
			}
			r.now()
			r.round(known + added)
			time.Sleep(14 * time.Second)
			if i > 0 {
				late = max(late, r.behind("m0000"), r.behind("m0499"))
			}
			time.Sleep(time.Second)
		}
		requests := to.count() - at
		r.drained(time.Minute)
		r.end()
		o, full := r.log.outcome(), (known+added)/r.cfg.Queue.MaxSamplesPerSend+1
		t.Logf("good series at most %s behind, %d requests in %d rounds, %d delivered, %d rejected", late, requests, rounds-4, o.Delivered, o.Dropped[queue.Rejected])
		if late > 30*time.Second {
			t.Errorf("good series were %s behind", late)
		}
		if most := (rounds-4)*(limit/r.cfg.Queue.MaxSamplesPerSend+1) + 2*(rounds-4)/4 + full; requests > most {
			t.Errorf("%d requests in the last %d rounds, want at most %d", requests, rounds-4, most)
		}
		if good := uint64(len(to.has)); o.Delivered != good || o.Delivered+o.Dropped[queue.Rejected] != known*before+(known+added)*rounds {
			t.Errorf("the receiver has %d samples, outcomes %+v", good, o)
		}
		for s := range active {
			if n := len(to.stored[s]); n < rounds-1 {
				t.Errorf("%d samples of %s, which the receiver takes", n, s)
			}
		}
	})
}

// TestRefusesEveryFifthRequest: for two hours a receiver refuses every fifth request at random in unknown words, and one series always.
// Good samples are late by minutes, and arrive: a refused control does not hold the target each time.
func TestRefusesEveryFifthRequest(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { refusesEveryFifth(t, seed) }) })
	}
}

func refusesEveryFifth(t *testing.T, seed uint64) {
	const (
		series = 500
		calm   = 4 // rounds, in which nothing is refused
		rounds = calm + 480
		every  = 15 * time.Second
		most   = 30 * time.Minute // that samples wait
		ever   = "m0003"          // refused
	)
	rnd := rand.New(rand.NewPCG(seed, 7))
	to, ill, refused := &fakeReceiver{latency: 20 * time.Millisecond, says: "bad request"}, false, 0
	to.poison = func(s smp) bool { return ill && s.series == ever }
	to.script = func(q fakeRequest) (client.Answer, bool) {
		is := ill && len(q.samples) > 0 && rnd.IntN(5) == 0
		if is {
			refused++
		}
		return client.Answer{Status: 400, Text: "bad request"}, is
	}
	r := newRig(t, to).timed()
	r.rand = rnd.Float64
	r.cfg.Queue.MaxShards = 1
	r.start()
	for i := range rounds {
		to.set(func() { ill = i >= calm })
		r.now()
		r.round(series)
		time.Sleep(every)
		if wait := r.log.pending() / series; wait > uint64(most/every) {
			t.Fatalf("%d rounds wait after %d", wait, i)
		}
	}
	r.drained(time.Hour)
	r.end()
	const good = (series-1)*rounds + calm
	if o := r.log.outcome(); refused < 100 || len(to.has) != good || o.Delivered != good {
		t.Errorf("%d random refusals; %d good samples are stored of %d; outcomes %+v", refused, len(to.has), good, o)
	}
}

// TestLateSamplesMuteNoSeries: another sender is ahead for some rounds, so all samples are late. Then one sample of each series is refused in
// unknown words. No series is muted: the next samples arrive.
func TestLateSamplesMuteNoSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const series, lateRounds, rounds = 20, 2 * split.MostRejected, 20
		round := 0
		to := &fakeReceiver{latency: 20 * time.Millisecond, says: "bad request"}
		to.poison = func(s smp) bool { return s.series == fmt.Sprintf("m%04d", round-lateRounds) }
		to.script = func(fakeRequest) (client.Answer, bool) {
			return client.Answer{Status: 400, Text: "out of order sample"}, round > 0 && round <= lateRounds
		}
		r := newRig(t, to).timed()
		r.start()
		for i := range 1 + lateRounds + rounds {
			to.set(func() { round = i })
			r.now()
			r.round(series)
			time.Sleep(15 * time.Second)
		}
		r.drained(time.Hour)
		r.end()
		want := uint64(series*lateRounds + rounds - 1) // the first series after the late rounds is number 1
		if o := r.log.outcome(); o.Dropped[queue.Rejected] != want {
			t.Errorf("%d samples are rejected, want %d: %+v", o.Dropped[queue.Rejected], want, o)
		}
	})
}
