package wal

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/wal/internal/segment"
	"hwsagent/wal/queue"
)

// life is one target's view in a random run over a real log.
type life struct {
	name     string
	opts     ReaderOptions
	r        *Reader
	received map[float64]bool // values of commits that were delivered
	reserved Mark             // the furthest that a power cut must not forget
}

// lifeCommit is a commit of a random run.
type lifeCommit struct {
	value   float64
	samples uint64
	total   uint64 // of the log's head behind it
	at      time.Time
}

// read delivers up to n entries of what is there.
func (f *life) read(t *testing.T, l *Log, n int) (missing queue.Outcome) {
	t.Helper()
	for ; n > 0 && f.r.target.position().Commit < l.head().Commit; n-- {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		e, err := f.r.Next(ctx)
		cancel()
		if err != nil {
			t.Fatalf("%s: %v", f.name, err)
		}
		for _, s := range e.Samples {
			f.received[s.V] = true
		}
		o := e.Missing
		o.Delivered = e.Count()
		if err := f.r.Reserve(e.End); err != nil {
			t.Fatalf("%s: %v", f.name, err)
		}
		f.reserved = segment.Later(f.reserved, e.End)
		f.r.Advance(e.End, o)
		missing.Add(e.Missing)
	}
	if g := f.r.Ledger(); !g.Balanced() {
		t.Fatalf("%s: ledger does not add up: %+v", f.name, g)
	}
	return missing
}

// TestRandomLife runs a log through commits, slow and fast targets, a small budget,
// kills and power cuts. The ledgers add up at any time; a kill loses nothing but what
// the budget takes, and nothing is ever called damage. A power cut takes what was committed in the last 1.5 seconds
// at most, and of that only what was not durable and not reserved for any target goes without being counted: everything else that
// never comes is in the target's ledger.
func TestRandomLife(t *testing.T) {
	t.Parallel()
	seeds := uint64(12)
	if underRace {
		seeds = 3 // make test lives them all
	}
	for seed := range seeds {
		for _, cuts := range []bool{false, true} {
			for _, limit := range []int64{0, 40_000} {
				t.Run(fmt.Sprintf("seed=%d,cuts=%v,limit=%d", seed, cuts, limit), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { randomLife(t, seed, cuts, limit) })
				})
			}
		}
	}
}

func randomLife(t *testing.T, seed uint64, cuts bool, limit int64) {
	rng := rand.New(rand.NewPCG(seed, 51))
	segments, saves := newMemDir(), newMemDir()
	targets := []*life{
		{name: "fast", opts: ReaderOptions{StartAt: StartOldest}, received: map[float64]bool{}},
		{name: "slow", opts: ReaderOptions{StartAt: StartOldest}, received: map[float64]bool{}},
		{name: "capped", opts: ReaderOptions{StartAt: StartOldest, MaxBacklog: 12_000}, received: map[float64]bool{}},
	}
	var l *Log
	open := func() {
		o := memOptions(t, segments, saves)
		o.SegmentBytes, o.MaxBytes, o.Retain = 4000, limit, 0
		var err error
		if l, err = Open(o); err != nil {
			t.Fatal(err)
		}
		for _, f := range targets {
			if f.r, err = l.Reader(f.name, f.opts); err != nil {
				t.Fatal(err)
			}
			if g := f.r.Ledger(); !g.Balanced() {
				t.Fatalf("%s: ledger after opening: %+v", f.name, g)
			}
		}
	}
	open()
	value, restarts := 0.0, 0
	var committed []lifeCommit
	uncounted := map[float64]bool{} // a power cut took them, and nothing durable knew of them
	for range 400 {
		switch n := rng.IntN(20); {
		case n < 9:
			value++
			n := 1 + rng.IntN(40)
			if err := commitFloats(l, n, int64(value), value); err != nil {
				t.Fatal(err)
			}
			committed = append(committed, lifeCommit{value, uint64(n), l.head().Total, time.Now()})
		case n < 13:
			check(t, targets[0].read(t, l, 10), cuts)
		case n < 15:
			f := targets[rng.IntN(3)]
			check(t, f.read(t, l, rng.IntN(6)), cuts)
		case n < 18:
			time.Sleep(time.Duration(rng.IntN(1500)) * time.Millisecond)
		case n < 19:
			f := targets[rng.IntN(3)]
			f.r.Rewind()
			check(t, f.read(t, l, rng.IntN(3)), cuts)
		default:
			restarts++
			left, leftSaves := segments.kill(), saves.kill()
			known, at := l.head().Total, time.Now()
			if cuts && rng.IntN(2) == 0 {
				left, leftSaves = segments.crash(), saves.crash()
				known = l.index.durable().Total
				for _, f := range targets {
					known = max(known, f.reserved.Total)
				}
			}
			for _, f := range targets {
				_ = f.r.Close() // of what nobody will see
			}
			_ = l.Close()
			segments, saves = left, leftSaves
			open()
			if total := l.head().Total; total < known {
				t.Errorf("after a crash the log knows of %d samples, of %d that were durable or reserved", total, known)
			}
			for _, c := range committed {
				if c.total <= l.head().Total {
					continue
				}
				if age := at.Sub(c.at); age > acceptableLoss && !uncounted[c.value] {
					t.Errorf("commit %v, of %s before the power cut, is gone", c.value, age)
				}
				uncounted[c.value] = true
			}
		}
	}
	for _, f := range targets {
		check(t, f.read(t, l, 1<<30), cuts)
		g := f.r.Ledger()
		if g.Pending != 0 {
			t.Errorf("%s: %+v is pending at the end", f.name, g)
		}
		var lost uint64
		for _, c := range committed {
			if !f.received[c.value] && !uncounted[c.value] {
				lost += c.samples
			}
		}
		if lost > g.Lost() || !cuts && limit == 0 && f.opts.MaxBacklog == 0 && lost > 0 {
			t.Errorf("%s: %d samples never came, the ledger says %+v", f.name, lost, g)
		}
		if err := f.r.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if restarts == 0 {
		t.Error("no restart happened")
	}
}

// check fails if something is missing for another reason than the run allows.
func check(t *testing.T, missing queue.Outcome, cuts bool) {
	t.Helper()
	if missing.Dropped[queue.Damage] != 0 || !cuts && missing.Sum() != 0 {
		t.Fatalf("missing: %+v", missing)
	}
}
