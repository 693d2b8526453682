package gate

import (
	"context"
	"time"
)

// Enter waits until a request may be sent. The error is ctx's.
func (g *Gate) Enter(ctx context.Context) (Pass, error) {
	defer g.await()()
	return g.enterWhen(ctx, g.admit)
}

// EnterOpen is Enter for a request that is no test of the target: it waits until the target takes data.
func (g *Gate) EnterOpen(ctx context.Context) (Pass, error) {
	return g.enterWhen(ctx, func(now time.Time) (Pass, time.Duration, bool) {
		if g.state != Open {
			return Pass{}, 0, false
		}
		return g.admit(now)
	})
}

// EnterBehind is Enter for a request of the backlog: while the target takes data it takes
// none of the places of the others, and one of its own; otherwise it lets the others go
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

// await counts a request of what is live that waits, until the function that it returns is
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

// enterWhen waits until admit lets a request through; g.mu is held for it.
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

// AwaitOpen waits until the target takes data, for d at most, or for ctx.
func (g *Gate) AwaitOpen(ctx context.Context, d time.Duration) {
	ctx, stop := context.WithTimeout(ctx, d)
	defer stop()
	for {
		g.mu.Lock()
		open, changed := g.state == Open, g.changed
		g.mu.Unlock()
		if open || waitFor(ctx, changed, 0) != nil {
			return
		}
	}
}

// AwaitPoke waits until the target is poked, for d at most, or for ctx.
func (g *Gate) AwaitPoke(ctx context.Context, d time.Duration) {
	ctx, stop := context.WithTimeout(ctx, d)
	defer stop()
	g.mu.Lock()
	before := g.pokes
	g.mu.Unlock()
	for {
		g.mu.Lock()
		poked, changed := g.pokes != before, g.changed
		g.mu.Unlock()
		if poked || waitFor(ctx, changed, 0) != nil {
			return
		}
	}
}

// admit lets a request through if it may go now; wait is how long to wait at most
// otherwise, 0 for until something changes. g.mu is held.
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

// AwaitTrouble waits until the target is paused or held, or for ctx.
func (g *Gate) AwaitTrouble(ctx context.Context) {
	for {
		g.mu.Lock()
		troubled, changed := g.state == Paused || g.state == Held, g.changed
		g.mu.Unlock()
		if troubled || waitFor(ctx, changed, 0) != nil {
			return
		}
	}
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
