package gate

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestPokeWhileARequestIsUnderWay: credentials change after a request was signed with
// the old ones and before its refusal arrives. The refusal must not count against the
// new ones for a whole step of the hold schedule.
func TestPokeWhileARequestIsUnderWay(t *testing.T) {
	for _, poked := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g := New(time.Millisecond, time.Second, 0, func() float64 { return 0.5 })
			refuse := func(poke bool) (next time.Duration) {
				t.Helper()
				p, err := g.Enter(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if poke {
					g.Poke()
				}
				g.Refused(p, "401 Unauthorized")
				return max(0, time.Until(g.View().Until))
			}
			first := refuse(poked)
			if poked != (first == 0) {
				t.Errorf("poked %t: the next test is in %s", poked, first)
			}
			// The refusal of a request that began after the poke holds as any other.
			if second := refuse(false); second < 8*time.Second {
				t.Errorf("poked %t: after the second refusal the next test is in %s, want at least 8 s", poked, second)
			}
		})
	}
}

// TestSplay: the first requests of queues that start together are spread; a poke makes the
// queue try at once.
func TestSplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, splay = 1000, 5 * time.Second
		rnd := rand.New(rand.NewPCG(1, 0))
		start := time.Now()
		var tenths [10]int
		for range n {
			g := New(time.Millisecond, time.Second, splay, rnd.Float64)
			tenths[g.View().Until.Sub(start)*10/splay]++
		}
		if slices.Min(tenths[:]) < n/20 || slices.Max(tenths[:]) > n*3/20 {
			t.Errorf("the first requests begin as %v in the tenths of %s, want about %d in each", tenths, splay, n/10)
		}
		for _, poke := range []bool{false, true} {
			g := New(time.Millisecond, time.Second, splay, func() float64 { return 0.5 })
			begin, want := time.Now(), splay/2
			if poke {
				g.Poke()
				want = 0
			}
			if _, err := g.Enter(t.Context()); err != nil || time.Since(begin) != want {
				t.Errorf("poked %t: the first request goes after %s, want %s (%v)", poke, time.Since(begin), want, err)
			}
		}
	})
}

// TestReopensSlowly: after trouble one request goes at a time, then twice as many each
// second.
func TestReopensSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(30*time.Millisecond, 5*time.Second, 0, func() float64 { return 0.5 })
		g.SetLimit(8)
		admits := func() (n int) {
			t.Helper()
			time.Sleep(5 * time.Second) // longer than requests keep a distance
			var ps []Pass
			for p, ok := g.Try(); ok; p, ok = g.Try() {
				ps = append(ps, p)
			}
			for _, p := range ps {
				g.Release(p)
			}
			return len(ps)
		}
		for outage := range 2 {
			p, err := g.Enter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for range outage * 20 {
				g.Failed(p, "down", 0, false)
				if p, err = g.Enter(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			g.Delivered(p)
			if _, ok := g.Try(); ok != (outage == 0) {
				t.Errorf("outage %d: whether the second request goes at once: %t", outage, ok)
			} else if ok {
				g.flying, g.inTurn = 0, 0
			}
			for _, want := range [][]int{{8, 8}, {1, 2, 4, 8, 8}}[outage] {
				if n := admits(); n != want {
					t.Errorf("outage %d: %d requests at a time, want %d", outage, n, want)
				}
				g.Widen()
			}
		}
	})
}

// TestRetryAfterSpreads: a Retry-After that many agents got at the same moment is kept, and jittered.
func TestRetryAfterSpreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const after = 30 * time.Second
		rnd := rand.New(rand.NewPCG(1, 0))
		first, last := time.Hour, time.Duration(0)
		for range 100 {
			g := New(30*time.Millisecond, 5*time.Second, 0, rnd.Float64)
			p, err := g.Enter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			g.Failed(p, "busy", after, true)
			wait := time.Until(g.View().Until)
			first, last = min(first, wait), max(last, wait)
		}
		if first < after || first > after+time.Second || last < after+5*time.Second || last > after+6*time.Second {
			t.Errorf("told to come back in %s, they do in %s to %s", after, first, last)
		}
	})
}
