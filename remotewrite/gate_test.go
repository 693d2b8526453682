package remotewrite

import (
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
			g := newGate(time.Millisecond, time.Second, func() float64 { return 0.5 })
			refuse := func(poke bool) (next time.Duration) {
				t.Helper()
				p, err := g.enter(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if poke {
					g.poke()
				}
				g.refused(p, "401 Unauthorized")
				return max(0, time.Until(g.view().until))
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
