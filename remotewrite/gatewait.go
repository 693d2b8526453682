package remotewrite

import (
	"context"
	"time"
)

// enter waits until a request may be sent. The error is ctx's.
func (g *gate) enter(ctx context.Context) (pass, error) {
	defer g.await()()
	return g.enterWhen(ctx, g.admit)
}

// enterOpen is enter for a request that is no test of the target: it waits until the target takes data.
func (g *gate) enterOpen(ctx context.Context) (pass, error) {
	return g.enterWhen(ctx, func(now time.Time) (pass, time.Duration, bool) {
		if g.state != gateOpen {
			return pass{}, 0, false
		}
		return g.admit(now)
	})
}

// enterBehind is enter for a request of the backlog: while the target takes data it takes
// none of the places of the others, and one of its own; otherwise it lets the others go
// first.
func (g *gate) enterBehind(ctx context.Context) (pass, error) {
	return g.enterWhen(ctx, func(now time.Time) (pass, time.Duration, bool) {
		switch {
		case g.state != gateOpen && g.waiting > 0, g.state == gateOpen && g.behind > 0:
			return pass{}, 0, false
		case g.state != gateOpen:
			return g.admit(now)
		case now.Before(g.until):
			return pass{}, g.until.Sub(now), false
		}
		g.behind++
		return pass{turn: g.turn, pokes: g.pokes, behind: true}, 0, true
	})
}

// await counts a request of what is live that waits, until the function that it returns is
// called.
func (g *gate) await() (done func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.waiting--; g.waiting == 0 && g.state != gateOpen {
			g.wake()
		}
	}
}

// enterWhen waits until admit lets a request through; g.mu is held for it.
func (g *gate) enterWhen(ctx context.Context, admit func(time.Time) (pass, time.Duration, bool)) (pass, error) {
	for {
		if err := ctx.Err(); err != nil {
			return pass{}, err
		}
		g.mu.Lock()
		p, wait, ok := admit(time.Now())
		changed := g.changed
		g.mu.Unlock()
		if ok {
			return p, nil
		}
		if err := waitFor(ctx, changed, wait); err != nil {
			return pass{}, err
		}
	}
}

// awaitOpen waits until the target takes data, for d at most, or for ctx.
func (g *gate) awaitOpen(ctx context.Context, d time.Duration) {
	ctx, stop := context.WithTimeout(ctx, d)
	defer stop()
	for {
		g.mu.Lock()
		open, changed := g.state == gateOpen, g.changed
		g.mu.Unlock()
		if open || waitFor(ctx, changed, 0) != nil {
			return
		}
	}
}

// awaitPoke waits until the target is poked, for d at most, or for ctx.
func (g *gate) awaitPoke(ctx context.Context, d time.Duration) {
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
func (g *gate) admit(now time.Time) (p pass, wait time.Duration, ok bool) {
	switch {
	case g.state == gateOpen && g.flying >= g.limit, g.state != gateOpen && g.inTurn > 0:
		return p, 0, false
	case now.Before(g.until):
		return p, g.until.Sub(now), false
	}
	g.flying++
	g.inTurn++
	return pass{turn: g.turn, pokes: g.pokes, test: g.state == gateHeld}, 0, true
}

// awaitTrouble waits until the target is paused or held, or for ctx.
func (g *gate) awaitTrouble(ctx context.Context) {
	for {
		g.mu.Lock()
		troubled, changed := g.state == gatePaused || g.state == gateHeld, g.changed
		g.mu.Unlock()
		if troubled || waitFor(ctx, changed, 0) != nil {
			return
		}
	}
}

// try is enter without waiting.
func (g *gate) try() (pass, bool) {
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
