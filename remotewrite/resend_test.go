package remotewrite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/wal/queue"
)

// TestCrashAtReceiverWithoutOutOfOrderWindow: after a kill, at a receiver that refuses a whole request for one late
// sample, no fresh sample is lost, and the search for stored samples costs little.
func TestCrashAtReceiverWithoutOutOfOrderWindow(t *testing.T) {
	for _, c := range []struct {
		name            string
		series, backlog int // backlog: rounds in the log at the start
		shards          int
		keeps, any      bool
	}{
		{name: "steady", series: 500},
		{name: "catching up", series: 500, backlog: 200},
		{name: "few series", series: 10, backlog: 400},
		{name: "many series", series: 5000, backlog: 20},
		{name: "four shards", series: 500, backlog: 200, shards: 4},
		{name: "keeps the good part", series: 500, backlog: 200, keeps: true},
		{name: "takes any order", series: 500, backlog: 200, any: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range seedsOf(6) {
				synctest.Test(t, func(t *testing.T) {
					rnd := rand.New(rand.NewPCG(seed, 7))
					r := newRig(t, &fakeReceiver{keepsGood: c.keeps, anyOrder: c.any, latency: 7 * time.Millisecond})
					r.cfg.Queue.MinShards = max(c.shards, 1)
					for range c.backlog {
						r.round(c.series)
					}
					r.start()
					if c.backlog == 0 {
						for range 5 + rnd.IntN(5) {
							r.round(c.series)
							time.Sleep(time.Second)
						}
					}
					// Kill: the savepoint at the last reservation is the durable state.
					n := 5 + rnd.IntN(20)
					r.until("some requests", time.Minute, func() bool { return r.to.count() >= min(n, 5+c.backlog) || r.log.pending() == 0 })
					r.end()
					r.log.crash()
					suspects := int(r.log.sp.High.Total - r.log.sp.Acked().Total)
					if suspects == 0 {
						t.Fatalf("seed %d: nothing is suspect: the crash did not happen", seed)
					}
					lanes := max(r.log.sp.Shards, 1)
					before := r.to.count()
					for range 3 {
						r.round(c.series)
					}
					extra := 0
					r.start()
					r.drained(time.Minute)
					r.end()
					seen := 0
					for _, q := range r.to.log()[before:] {
						if seen >= suspects+1 {
							break
						}
						extra++
						for _, s := range q.samples {
							if q.status == 204 && s.t > 0 {
								seen++
							}
						}
					}
					// Limit of requests for samples sent again: a stored chunk takes three single samples, or six if it
					// has twelve or fewer; the chunk in which the stored samples end takes a search (see package
					// split).
					chunks := lanes * ceil(suspects, c.series) * ceil(c.series, lanes*r.cfg.Queue.MaxSamplesPerSend)
					each := 3
					if c.series/lanes <= 12 {
						each = 6
					}
					if most := each*chunks + 20*lanes; extra > most {
						t.Errorf("seed %d: %d requests for %d suspects in %d chunks of %d lanes, want at most %d\n%s", seed, extra, suspects, chunks, lanes, most, r.to.dump())
					}
					o := r.log.outcome()
					if o.Lost() != 0 {
						t.Errorf("seed %d: outcomes %+v, nothing may be lost", seed, o)
					}
					if !c.any && o.Dropped[queue.Resent] == 0 && r.to.again == 0 {
						t.Errorf("seed %d: nothing was sent again", seed)
					}
					checkStored(t, r)
				})
			}
		})
	}
}

func ceil(a, b int) int { return (a + b - 1) / b }

// checkStored is verify for a log whose ledger began at the crash.
func checkStored(t *testing.T, r *rig) {
	t.Helper()
	missing := 0
	for _, e := range r.log.entries {
		for _, s := range e.Samples {
			if !r.to.has[smp{s.Series.Labels.Get("__name__"), s.T, s.V}] {
				missing++
			}
		}
	}
	if missing > 0 {
		t.Errorf("receiver lacks %d samples; %s", missing, fmt.Sprint(r.log.outcome()))
	}
	for name, ss := range r.to.stored {
		for i := 1; i < len(ss); i++ {
			if ss[i].t <= ss[i-1].t && !r.to.anyOrder {
				t.Errorf("series %s is out of order", name)
			}
		}
	}
}

// TestLostAnswers: an answer is lost in transit: the samples may be stored or not.
func TestLostAnswers(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		t.Run(fmt.Sprintf("keepsGood=%v", keeps), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lost := 0
				r := newRig(t, &fakeReceiver{keepsGood: keeps, loseAnswer: func(q fakeRequest) bool {
					if q.n%7 == 3 {
						lost++
						return true
					}
					return false
				}})
				for range 100 {
					r.round(300)
				}
				r.start()
				r.drained(5 * time.Minute)
				r.end()
				if lost < 3 {
					t.Errorf("%d answers were lost", lost)
				}
				if o := r.log.outcome(); o.Lost() != 0 {
					t.Errorf("outcomes %+v", o)
				}
				r.verify()
			})
		})
	}
}

// blocked is a sender that never answers.
type blocked struct{}

func (blocked) Send(ctx context.Context, _ client.Request) client.Answer {
	<-ctx.Done()
	return client.Answer{Err: ctx.Err()}
}

// TestMemoryOfResend: after the loss of a savepoint all samples of a long log are in doubt. No more of them are in
// memory than a window spans.
func TestMemoryOfResend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const series, most = 1000, 32 << 20 // bytes, the collector lets as many be in use again
		r := newRig(t, &fakeReceiver{})
		for range 700 {
			r.round(series)
		}
		r.log.sp.High = r.log.head()
		heap := func() int64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before := heap()
		q, err := New(Options{Name: "test", Config: r.cfg, Source: r.log, Sender: blocked{}})
		if err != nil {
			t.Fatal(err)
		}
		if q.live.spread != config.MaxShards {
			t.Fatalf("%d lanes: the savepoint is not lost", q.live.spread)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); q.Run(ctx) }()
		synctest.Wait() // it reads until its window is full
		open, used := q.Status().Window, heap()-before
		cancel()
		<-done
		t.Logf("%d samples in the window, %.1f MiB", open, float64(used)/(1<<20))
		if open < 200_000 || used > most {
			t.Errorf("%d samples in the window take %d bytes, want at most %d", open, used, most)
		}
	})
}
