package remotewrite

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/replay"
)

// TestReplayContinuesWithinACommit: a replay that was interrupted within a commit with several samples of each series is
// continued at receivers that take samples in order: none is missing, and none counts as refused.
func TestReplayContinuesWithinACommit(t *testing.T) {
	commits := map[string]func(n int) smp{
		"series after series": func(n int) smp { return smp{fmt.Sprintf("s%d", n/50), int64(n%50+1) * 1000, float64(n)} },
		"time after time":     func(n int) smp { return smp{fmt.Sprintf("s%d", n%20), int64(n/20+1) * 1000, float64(n)} },
	}
	for _, keeps := range []bool{false, true} {
		for name, at := range commits {
			for cut := 1; cut < 10; cut++ {
				t.Run(fmt.Sprintf("%s,keeps=%v,cut=%d", name, keeps, cut), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { continueWithinACommit(t, at, cut, keeps) })
				})
			}
		}
	}
}

func continueWithinACommit(t *testing.T, at func(n int) smp, cut int, keeps bool) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	to := &fakeReceiver{keepsGood: keeps, latency: time.Second}
	r := newReplayRig(t, 0, 0, to)
	var all []smp
	for n := range 1000 {
		all = append(all, at(n))
	}
	r.log.append(smp{"s0", 1, 0})
	r.log.append(all...)
	r.log.append(smp{"s0", 100_000, 0}, smp{"s1", 100_000, 0})
	to.script = func(q fakeRequest) (client.Answer, bool) {
		if q.n == cut {
			cancel()
		}
		return client.Answer{}, false
	}
	c, err := r.run(ctx, 0)
	if !errors.Is(err, context.Canceled) || c.Done != 1 {
		t.Fatalf("the first replay: %+v, %v", c, err)
	}
	c, err = r.run(t.Context(), c.Done)
	if err != nil || c.Refused != 0 || c.Delivered+c.Unconfirmed != c.Selected {
		t.Errorf("the second replay: %+v, %v", c, err)
	}
	r.has(1003)
}

// TestReplayContinuationEnds: a continuation ends when the receiver takes nothing.
func TestReplayContinuationEnds(t *testing.T) {
	for _, a := range []client.Answer{{Status: 400, Text: "bad"}, {Status: 401, Text: "no token"}, {Status: 400, Text: "out of order sample"}} {
		r := newReplayRig(t, 50, 20, &fakeReceiver{script: func(fakeRequest) (client.Answer, bool) { return a, true }})
		c, err := r.run(t.Context(), 10)
		var stopped *replay.Error
		if !errors.As(err, &stopped) || !stopped.First || c.Delivered != 0 {
			t.Errorf("%v: %+v, %v", a, c, err)
		}
		if want, n := map[bool]int{false: 1, true: 21}[a.SaysLate()], r.to.count(); n != want {
			t.Errorf("%v: %d requests, want %d", a, n, want)
		}
	}
}
