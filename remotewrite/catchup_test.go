package remotewrite

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/wal"
	"hwsagent/wal/queue"
)

// lateRig is a queue over a log on disk, whose target gets the newest data first.
type lateRig struct {
	*testing.T
	dir    string
	to     *fakeReceiver
	cfg    config.Config
	down   atomic.Bool
	rounds int // of every series

	log  *wal.Log
	r    *wal.Reader
	q    *Queue
	stop func()
}

const lateRigSeries = 20

func newLateRig(t *testing.T) *lateRig {
	r := &lateRig{T: t, dir: memoryDir(t), to: &fakeReceiver{anyOrder: true, latency: 100 * time.Millisecond}, cfg: config.DefaultConfig()}
	r.to.script = func(fakeRequest) (client.Answer, bool) { return client.Answer{Err: errDown}, r.down.Load() }
	r.cfg.Queue.BatchSendDeadline = model.Duration(time.Second)
	r.cfg.Queue.MaxSamplesPerSend, r.cfg.Queue.Capacity, r.cfg.Queue.MaxShards = 100, 500, 1
	r.cfg.Target.CatchUp = config.LiveFirst
	return r
}

// open opens the log and makes the queue.
func (r *lateRig) open() {
	r.Helper()
	var err error
	if r.log, err = wal.Open(wal.Options{Dir: r.dir, SegmentBytes: 64 << 10}); err != nil {
		r.Fatal(err)
	}
	if r.r, err = r.log.Reader("test", wal.ReaderOptions{MaxBacklog: int64(r.cfg.Target.MaxBacklog)}); err != nil {
		r.Fatal(err)
	}
	r.q, err = New(Options{Name: "test", Config: r.cfg, Source: r.r, Backlog: r.r.Backlog(), Split: r.r.Split, Sender: r.to, DeadLetters: &memLetters{}, Rand: func() float64 { return 0.5 }})
	if err != nil {
		r.Fatal(err)
	}
}

// start opens the log, and delivers.
func (r *lateRig) start() {
	r.Helper()
	r.open()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); r.q.Run(ctx) }()
	r.stop = func() {
		cancel()
		<-done
		r.close()
	}
}

func (r *lateRig) close() {
	r.Helper()
	if err := r.r.Close(); err != nil {
		r.Error(err)
	}
	if err := r.log.Close(); err != nil {
		r.Error(err)
	}
}

// collect gives the log a round of samples each five seconds, for so long.
func (r *lateRig) collect(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Second) {
		app := r.log.AppenderV2(context.Background())
		for i := range lateRigSeries {
			ls := labels.FromStrings("__name__", fmt.Sprintf("m%02d", i))
			if _, err := app.Append(0, ls, 0, time.Now().UnixMilli(), float64(r.rounds), nil, nil, storage.AppendV2Options{}); err != nil {
				r.Fatal(err)
			}
		}
		if err := app.Commit(); err != nil {
			r.Fatal(err)
		}
		r.rounds++
	}
}

// newest is how old the newest sample of the receiver is.
func (r *lateRig) newest() time.Duration {
	r.to.mu.Lock()
	defer r.to.mu.Unlock()
	newest := int64(math.MinInt64)
	for s := range r.to.has {
		newest = max(newest, s.t)
	}
	return time.Since(time.UnixMilli(newest))
}

// missing is how many samples the receiver does not have.
func (r *lateRig) missing() int {
	r.to.mu.Lock()
	defer r.to.mu.Unlock()
	return r.rounds*lateRigSeries - len(r.to.has)
}

// delivered waits until nothing is left, and checks that all of it has come.
func (r *lateRig) delivered(most time.Duration) {
	r.Helper()
	for end := time.Now().Add(most); r.r.Ledger().Pending > 0; time.Sleep(time.Second) {
		if time.Now().After(end) {
			r.Fatalf("not delivered: %+v; %+v; %+v", r.r.Ledger(), r.q.Status(), r.r.Savepoint())
		}
	}
	r.to.mu.Lock()
	defer r.to.mu.Unlock()
	if got, want := len(r.to.has), r.rounds*lateRigSeries; got != want {
		r.Errorf("%d samples came, want %d", got, want)
	}
	if g := r.r.Ledger(); !g.Balanced() || g.GivenUp() > 0 {
		r.Errorf("ledger %+v", g)
	}
}

// TestLiveFirst: after an outage of hours fresh samples arrive at once, while the backlog follows, through restarts,
// until it is complete.
func TestLiveFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLateRig(t)
		r.start()
		r.collect(time.Minute)
		r.down.Store(true)
		r.collect(3 * time.Hour)
		r.down.Store(false)
		r.collect(15 * time.Second)
		for range 3 {
			if age, st := r.newest(), r.q.Status(); age > 8*time.Second || st.Missed == 0 || st.State != StateBehind {
				t.Errorf("the newest sample is %v old; %+v", age, st)
			}
			r.collect(20 * time.Second)
			r.stop()
			r.start()
			r.collect(15 * time.Second)
		}
		r.delivered(time.Hour)
		r.to.set(func() {
			if n := r.to.maxFly; n > 2 {
				t.Errorf("%d requests at a time", n)
			}
		})
		if st := r.q.Status(); st.Missed > 0 || st.State != StateOK {
			t.Errorf("afterwards: %+v", st)
		}
		r.stop()
	})
}

// TestSplitTakesTheWaitingEntry: an entry that was read, and waits until the window is empty, goes to the backlog's lane alone.
func TestSplitTakesTheWaitingEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLateRig(t)
		r.open()
		defer r.close()
		r.collect(10 * time.Second)
		live, back := r.q.live, r.q.back
		e, err := live.nextEntry(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		first := e.End
		live.unread = e
		live.splitting.Store(true)
		live.splitIfDue()
		if e, err := back.nextEntry(t.Context()); err != nil || e.End != first {
			t.Errorf("the backlog begins with %+v, %v; want the entry that ends at %v", e, err, first)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if e, err := live.nextEntry(ctx); err == nil {
			t.Errorf("the live lane reads the entry that ends at %v, which is the backlog's", e.End)
		}
	})
}

// TestLiveFirstAgainAndAgain: a second outage during a backlog does not delay fresh samples afterwards either.
func TestLiveFirstAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLateRig(t)
		r.cfg.Target.CatchUpRateLimit = 10 // samples a second: fewer than are added
		r.start()
		for range 3 {
			r.down.Store(true)
			r.collect(10 * time.Minute)
			r.down.Store(false)
			r.collect(30 * time.Second)
			if age := r.newest(); age > 8*time.Second {
				t.Errorf("the newest sample is %v old; %+v", age, r.q.Status())
			}
		}
		if n := len(r.r.Savepoint().Done); n != 4 {
			t.Errorf("%d ranges after three outages", n)
		}
		began := time.Now()
		r.delivered(2 * time.Hour)
		if took := time.Since(began); took < 10*time.Minute {
			t.Errorf("7,200 samples at 10 a second came in %v", took)
		}
		r.stop()
	})
}

// TestCatchUpRateLimitInOrder: with in_order, the rate limit applies to old samples, not to fresh ones.
func TestCatchUpRateLimitInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLateRig(t)
		r.cfg.Target.CatchUp, r.cfg.Target.CatchUpRateLimit = config.InOrder, 20
		r.start()
		r.down.Store(true)
		r.collect(10 * time.Minute)
		r.down.Store(false)
		began := time.Now() // 2,400 samples wait, and 4 come each second: 150 s
		for r.newest() > 8*time.Second {
			r.collect(5 * time.Second)
			if time.Since(began) > time.Hour {
				t.Fatalf("%+v", r.q.Status())
			}
		}
		if took := time.Since(began); took < 2*time.Minute || took > 4*time.Minute {
			t.Errorf("caught up in %v", took)
		}
		if n := len(r.r.Savepoint().Done); n != 1 {
			t.Errorf("%d ranges", n)
		}
		r.delivered(time.Minute)
		r.stop()
	})
}

// TestCatchUpRateLimit: the backlog arrives at the rate of the limit, whatever the live samples do.
func TestCatchUpRateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate = 50
		r := newLateRig(t)
		r.cfg.Target.CatchUpRateLimit = rate
		r.start()
		r.down.Store(true)
		r.collect(2 * time.Hour)
		r.down.Store(false)
		r.collect(30 * time.Second)
		for range 8 {
			before := r.q.Status().Missed
			r.collect(time.Minute)
			after := r.q.Status().Missed
			if got := before - after; got < rate*60*9/10 || got > rate*60+uint64(2*r.cfg.Queue.MaxSamplesPerSend) {
				t.Errorf("%d samples of the backlog in a minute, at %d a second", got, rate)
			}
			if age := r.newest(); age > 8*time.Second {
				t.Errorf("the newest sample is %v old", age)
			}
		}
		r.delivered(time.Hour)
		r.stop()
	})
}

// TestMaxBacklog: the oldest samples beyond max_backlog are dropped and counted; the others arrive, in either order.
func TestMaxBacklog(t *testing.T) {
	for _, order := range []config.CatchUp{config.InOrder, config.LiveFirst} {
		if testing.Short() && order == config.InOrder {
			continue // the race detector sees more goroutines in the other
		}
		t.Run(string(order), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newLateRig(t)
				r.cfg.Target.CatchUp, r.cfg.Target.MaxBacklog = order, 256<<10
				r.cfg.Target.CatchUpRateLimit = 100
				r.start()
				r.collect(time.Minute)
				r.down.Store(true)
				r.collect(6 * time.Hour)
				r.down.Store(false)
				r.collect(30 * time.Minute)
				for end := time.Now().Add(time.Hour); r.r.Ledger().Pending > 0; time.Sleep(time.Second) {
					if time.Now().After(end) {
						t.Fatalf("%+v; %+v", r.r.Ledger(), r.q.Status())
					}
				}
				g, missing := r.r.Ledger(), r.missing()
				if !g.Balanced() || missing == 0 || g.GivenUp() != uint64(missing) || g.Dropped[queue.Budget] != g.GivenUp() {
					t.Errorf("%d samples are missing; ledger %+v", missing, g)
				}
				r.to.mu.Lock()
				defer r.to.mu.Unlock()
				for name, have := range r.to.stored {
					gaps := 0
					times := map[float64]bool{}
					for _, s := range have {
						times[s.v] = true
					}
					for v := 1; v < r.rounds; v++ {
						if times[float64(v-1)] && !times[float64(v)] {
							gaps++
						}
					}
					if gaps != 1 || !times[float64(r.rounds-1)] {
						t.Errorf("series %s has %d gaps; want one, of the oldest", name, gaps)
					}
				}
				r.stop()
			})
		})
	}
}
