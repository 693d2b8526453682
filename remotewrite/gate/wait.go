package gate

import (
	"context"
	"time"
)

// Enter waits until the gate admits a request. The error is ctx's.
func (g *Gate) Enter(ctx context.Context) (Pass, error) {
	defer g.await()()
	return g.enterWhen(ctx, g.admit)
}

// EnterOpen is Enter for a request that must not test the target: it waits until the target accepts data.
func (g *Gate) EnterOpen(ctx context.Context) (Pass, error) {
	return g.enterWhen(ctx, func(now time.Time) (Pass, time.Duration, bool) {
		if g.state != Open {
			return Pass{}, 0, false
		}
		return g.admit(now)
	})
}

// EnterBehind is Enter for a backlog request. While the target accepts data, the backlog has one place
// of its own and uses none of the others; otherwise it lets requests with new samples go
// first.
func (g *Gate) EnterBehind(ctx context.Context) (Pass, error) {
	return g.enterWhen(ctx, func(now time.Time) (Pass, time.Duration, bool) {
		switch {
		case g.state != Open && g.waiting > 0, g.state == Open && g.behind > 0:
			return Pass{}, 0, false
		case g.state != Open:
			return g.admit(now)
		case now.Before(g.until):
			return Pass{}, g.until.Sub(now), false
		}
		g.behind++
		return Pass{turn: g.turn, pokes: g.pokes, Behind: true}, 0, true
	})
}

// await counts a waiting request with new samples until the returned function is
// called.
func (g *Gate) await() (done func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.waiting--; g.waiting == 0 && g.state != Open {
			g.wake()
		}
	}
}

// enterWhen waits until admit admits a request; it calls admit with g.mu held.
func (g *Gate) enterWhen(ctx context.Context, admit func(time.Time) (Pass, time.Duration, bool)) (Pass, error) {
	for {
		if err := ctx.Err(); err != nil {
			return Pass{}, err
		}
		g.mu.Lock()
		p, wait, ok := admit(time.Now())
		changed := g.changed
		g.mu.Unlock()
		if ok {
			return p, nil
		}
		if err := waitFor(ctx, changed, wait); err != nil {
			return Pass{}, err
		}
	}
}

// AwaitOpen waits until the target accepts data, for at most d, or until ctx ends.
func (g *Gate) AwaitOpen(ctx context.Context, d time.Duration) {
	ctx, stop := context.WithTimeout(ctx, d)
	defer stop()
	g.awaitState(ctx, func() bool { return g.state == Open })
}

// AwaitTrouble waits until the target is paused or held, or until ctx ends.
func (g *Gate) AwaitTrouble(ctx context.Context) {
	g.awaitState(ctx, func() bool { return g.state == Paused || g.state == Held })
}

// awaitState waits until is returns true, or until ctx ends; it calls is with g.mu held.
func (g *Gate) awaitState(ctx context.Context, is func() bool) {
	// The error is that ctx ended, which its owner knows.
	_, _ = g.enterWhen(ctx, func(time.Time) (Pass, time.Duration, bool) { return Pass{}, 0, is() })
}

// admit admits a request if it may go now. Otherwise wait is the longest time to wait,
// 0 for until something changes. g.mu is held.
func (g *Gate) admit(now time.Time) (p Pass, wait time.Duration, ok bool) {
	switch {
	case g.state == Open && g.flying >= g.limit, g.state != Open && g.inTurn > 0:
		return p, 0, false
	case now.Before(g.until):
		return p, g.until.Sub(now), false
	}
	g.flying++
	g.inTurn++
	return Pass{turn: g.turn, pokes: g.pokes, Test: g.state == Held}, 0, true
}

// Try is Enter without waiting.
func (g *Gate) Try() (Pass, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p, _, ok := g.admit(time.Now())
	return p, ok
}

// waitFor waits for changed, for ctx, or for d unless it is 0.
func waitFor(ctx context.Context, changed <-chan struct{}, d time.Duration) error {
	var expired <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		expired = t.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-changed:
	case <-expired:
	}
	return nil
}
