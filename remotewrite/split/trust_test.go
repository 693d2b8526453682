package split

import (
	"testing"
	"time"
)

func TestTrust(t *testing.T) {
	var trust Trust
	at := func(d time.Duration) int64 { return int64(time.Hour + d) }
	turns := func(when string, d time.Duration, want int) {
		t.Helper()
		if got := trust.Turns(at(d)); got != want {
			t.Errorf("%s: %d turns, want %d", when, got, want)
		}
	}
	turns("nothing seen", 0, FullTurns)
	trust.Vouch(at(0))
	turns("after a full proof", vouchFor-1, QuickTurns)
	turns("long after it", vouchFor, FullTurns)
	trust.Vouch(at(vouchFor))
	trust.Distrust(at(vouchFor + 1))
	turns("a control was refused", vouchFor+distrustFor, 0)
	turns("long after it, where the proof was before it", vouchFor+distrustFor+1, FullTurns)
	trust.Vouch(at(vouchFor + distrustFor + 1))
	turns("a full proof since", vouchFor+distrustFor+2, QuickTurns)
}
