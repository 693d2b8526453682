package remotewrite

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// lockedBacklog is a batch of several rounds with series that are refused in each, as
// those are of which the receiver has something newer.
type lockedBacklog struct {
	hashes []uint64
	round  []int
	spans  []span
	locked map[uint64]bool
}

func newLockedBacklog(series, perSeries int, locked ...int) lockedBacklog {
	b := lockedBacklog{locked: map[uint64]bool{}}
	for r := range perSeries {
		b.spans = append(b.spans, span{r * series, (r + 1) * series})
		for s := range series {
			b.hashes, b.round = append(b.hashes, uint64(s)), append(b.round, r)
		}
	}
	for _, s := range locked {
		b.locked[uint64(s)] = true
	}
	return b
}

// isolate takes the batch apart at a receiver that stores nothing of a refused request.
func (b lockedBacklog) isolate(budget int) (p *isolation, sent int) {
	m := &modelReceiver{bad: map[int]bool{}, newest: map[uint64]int{}}
	for i, h := range b.hashes {
		m.bad[i] = b.locked[h]
	}
	p = newIsolation(rollsBack, b.hashes, b.spans, true, budget)
	for {
		at, ok := p.next()
		if !ok {
			return p, sent
		}
		sent++
		if m.send(at, b.hashes, b.round) {
			p.accepted()
			continue
		}
		if len(at) == 1 {
			sent++
			p.spent(1) // the empty write that confirms it
		}
		p.refused("out of order sample", true, false)
	}
}

// Once such series are known, a round costs one request for all others, and two for each of
// them.
func TestIsolationKnowsSeriesThatAreBadThroughout(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 11))
		series, perSeries, locked := 8+rnd.IntN(300), 2+rnd.IntN(30), []int{}
		for range 1 + rnd.IntN(3) {
			locked = append(locked, rnd.IntN(series))
		}
		b := newLockedBacklog(series, perSeries, locked...)
		p, sent := b.isolate(10_000)
		bad, _, unknown, _ := p.result()
		if len(unknown) > 0 || slices.ContainsFunc(bad, func(i int) bool { return !b.locked[b.hashes[i]] }) || len(bad) != len(b.locked)*perSeries {
			t.Fatalf("seed %d: %d series in %d rounds, locked %v: bad %v, unknown %v", seed, series, perSeries, locked, bad, unknown)
		}
		// To find them in the first round, and to try twice whether they are good again.
		first := 2*len(b.locked)*10 + 4
		if most := first + perSeries*(1+2*len(b.locked)); sent > most {
			t.Errorf("seed %d: %d series in %d rounds, locked %v: %d requests, want at most %d", seed, series, perSeries, locked, sent, most)
		}
	}
}

// A backlog for a receiver that has something newer of three series: all of these are lost,
// and nothing of the others.
func TestLockedSeriesCostNoSampleOfOthers(t *testing.T) {
	for _, c := range []struct{ series, rounds int }{{22, 11}, {10, 150}, {4, 300}, {400, 5}} {
		t.Run(fmt.Sprintf("%d series, %d rounds", c.series, c.rounds), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				to := &fakeReceiver{latency: time.Millisecond, stored: map[string][]smp{}, has: map[smp]bool{}}
				r := newRig(t, to)
				locked := map[string]bool{"m0001": true}
				if c.series > 20 {
					locked["m0003"], locked["m0019"] = true, true
				}
				for range c.rounds {
					r.round(c.series)
				}
				for name := range locked {
					s := smp{name, r.time + 240_000, 1}
					to.stored[name], to.has[s] = []smp{s}, true
				}
				r.start()
				r.drained(10 * time.Minute)
				r.end()
				if o, want := r.log.outcome(), uint64(len(locked)*c.rounds); o.Lost() != want {
					t.Errorf("%d are lost, want %d: %+v", o.Lost(), want, o)
				}
				for _, e := range r.log.entries {
					for _, s := range e.Samples {
						if x := smpOf(s); !locked[x.series] && !to.has[x] {
							t.Fatalf("the receiver lacks %+v", x)
						}
					}
				}
				t.Logf("%d requests", to.count())
			})
		})
	}
}
