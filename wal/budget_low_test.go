package wal

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestLittleSpaceHasABeginning: the time is that of the first check that found too little, and gone with the first that found enough.
func TestLittleSpaceHasABeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &budget{}
		began := time.Time{}
		for i, low := range []bool{false, true, true, false, false, true} {
			time.Sleep(time.Minute)
			if low && began.IsZero() {
				began = time.Now()
			} else if !low {
				began = time.Time{}
			}
			if g.noteLow(low); !g.littleSince().Equal(began) || g.low.Load() != low {
				t.Errorf("check %d: since %v, want %v", i, g.littleSince(), began)
			}
		}
	})
}
