package remotewrite

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/internal/tools/tier"
	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/wal/queue"
)

// refusedBacklog is a case of a backlog beside live samples in which the receiver always refuses some series.
type refusedBacklog struct {
	seriesLimit
	ends    bool // the first and the last series of each round, and the middle one, are refused
	known   bool // the words of the refusal say why
	perSend int  // max_samples_per_send
}

func (c refusedBacklog) bad(series string) bool {
	return c.seriesLimit.bad(series) || c.ends && (series == "m0000" || series == "m0250" || series == "m0499")
}

// TestBacklogOfRefusedSeries: a backlog beside live samples, with series that the receiver always refuses, costs few
// requests per round. All its good samples are delivered soon, and do not wait behind the refused ones.
func TestBacklogOfRefusedSeries(t *testing.T) {
	for _, percent := range []uint32{1, 10, 40} {
		for _, known := range []bool{false, true} {
			for _, keeps := range []bool{false, true} {
				c := refusedBacklog{seriesLimit: seriesLimit{percent: percent, words: "bad request", keeps: keeps}, known: known, ends: keeps, perSend: 2000}
				if known {
					c.words = limitWords
				}
				if !tier.Nightly() && percent != 10 {
					continue
				}
				t.Run(fmt.Sprintf("%d percent/known words=%t/keeps=%t", percent, known, keeps), func(t *testing.T) { synctest.Test(t, c.run) })
			}
		}
	}
}

// TestBacklogOfRefusedSeriesInSmallRequests: the same with at most one round per request.
func TestBacklogOfRefusedSeriesInSmallRequests(t *testing.T) {
	for _, perSend := range []int{100, 500} {
		c := refusedBacklog{seriesLimit: seriesLimit{percent: 10, words: limitWords}, known: true, perSend: perSend}
		t.Run(fmt.Sprintf("%d samples in a request", perSend), func(t *testing.T) { synctest.Test(t, c.run) })
	}
}

// TestNextBacklogForgetsRefusedSeries: the facts about refused series are forgotten when their backlog is delivered: if
// a limit is raised before the next outage, the next backlog does not pay for it.
func TestNextBacklogForgetsRefusedSeries(t *testing.T) {
	for _, words := range []string{"bad request", limitWords} {
		t.Run(words, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const series, every = 500, 15 * time.Second
				refuses := seriesLimit{percent: 10}
				to := &fakeReceiver{anyOrder: true, latency: 5 * time.Millisecond, says: words}
				healed, down := false, false
				to.poison = func(s smp) bool { return !healed && refuses.bad(s.series) }
				to.script = func(fakeRequest) (client.Answer, bool) { return client.Answer{Err: errDown}, down }
				r := newRig(t, to).timed()
				r.cfg.Target.CatchUp = config.LiveFirst
				r.start()
				rounds := func(n int) {
					for range n {
						r.time = time.Now().UnixMilli() - 1000
						r.round(series)
						time.Sleep(every)
					}
				}
				outage := func() {
					to.set(func() { down = true })
					rounds(60)
					to.set(func() { down = false })
				}
				rounds(4)
				outage()
				rounds(60)
				refused := r.log.outcome().Lost()
				if n := r.log.pending(); n > 0 || refused == 0 {
					t.Fatalf("%d samples wait, %d were refused", n, refused)
				}
				to.set(func() { healed = true })
				rounds(24)
				before := r.log.outcome().Lost()
				outage()
				rounds(20)
				r.drained(time.Hour)
				r.end()
				if o := r.log.outcome(); o.Lost() != before {
					t.Errorf("%d samples are lost of the second outage; outcomes %+v", o.Lost()-before, o)
				}
			})
		})
	}
}

func (c refusedBacklog) run(t *testing.T) {
	const (
		series = 500
		outage = 240 // rounds
		after  = 40
		every  = 15 * time.Second
	)
	to := &fakeReceiver{anyOrder: true, latency: 20 * time.Millisecond, keepsGood: c.keeps, keepsGood2: c.keeps, says: c.words}
	to.poison = func(s smp) bool { return c.bad(s.series) }
	down, first := false, time.Time{}
	live, behind := 0, 0 // requests with samples
	to.script = func(q fakeRequest) (client.Answer, bool) {
		if !down && !first.IsZero() && len(q.samples) > 0 {
			if q.samples[len(q.samples)-1].t >= first.UnixMilli() {
				live++
			} else {
				behind++
			}
		}
		return client.Answer{Err: errDown}, down
	}
	r := newRig(t, to).timed()
	r.cfg.Target.CatchUp = config.LiveFirst
	r.cfg.Queue.MaxSamplesPerSend = c.perSend
	r.start()
	rounds := func(n int) {
		for range n {
			r.time = time.Now().UnixMilli() - 1000
			r.round(series)
			time.Sleep(every)
		}
	}
	rounds(4)
	to.set(func() { down = true })
	rounds(outage)
	to.set(func() { down, first = false, time.Now() })
	rounds(after)
	st, pending := r.q.Status(), r.log.pending()
	good := 0
	for i := range series {
		if !c.bad(fmt.Sprintf("m%04d", i)) {
			good += 4 + outage + after
		}
	}
	bad := uint64(series*(4+outage+after) - good)
	o := r.log.outcome()
	t.Logf("%d requests for %d rounds of backlog, %d for %d live ones; %d pending; outcomes %+v", behind, outage, live, after, pending, o)
	if pending > 0 {
		t.Errorf("%d samples wait after %v: %s %s", pending, after*every, st.State, st.Why)
	}
	if len(to.has) != good || o.Delivered != uint64(good) || o.Dropped[queue.Rejected]+o.Dropped[queue.Unconfirmed] != bad {
		t.Errorf("%d of %d good samples are stored; outcomes %+v for %d bad ones", len(to.has), good, o, bad)
	}
	// Each refused series is found alone; with a stated reason, some are found alone, and they speak for the others.
	// With unknown words each request also costs its budget: see split.
	batches := max(outage*series/c.perSend, 1)
	most := 3*batches + 32*int(bad)/(4+outage+after)
	if !c.known {
		most += batches * (64 + 30)
	}
	if behind > most {
		t.Errorf("%d requests for %d rounds of backlog, want at most %d", behind, outage, most)
	}
	r.end()
}
