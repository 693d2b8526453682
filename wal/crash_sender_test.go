package wal

import (
	"context"
	"math/rand/v2"
	"time"
)

// openTargets opens the targets of the n-th process, and judges their savepoints.
func (c *crashLife) openTargets(l *Log, n int, last bool) {
	for _, f := range c.targets {
		t := l.targets.byName[f.name]
		switch {
		case t == nil && f.known:
			c.fail("the savepoint of %s, which was durable, is gone", f.name)
		case t != nil && t.isLost():
			c.fail("both slots of %s are bad", f.name)
		case t != nil:
			c.judge(f, t, l)
		}
	}
	for _, f := range c.targets {
		if c.off || n < f.first && !last || f.only && n != f.first && !last {
			continue
		}
		r, err := l.Reader(f.name, f.opts)
		if c.off {
			return
		}
		if err != nil {
			c.fail("open target %s on a good disk: %v", f.name, err)
			return
		}
		if !f.known {
			f.known = true
			f.since = c.absent()
		}
		f.r = r
		f.pass++
		f.at = r.target.position()
		c.balanced(f)
	}
}

// judge looks at the savepoint that a crash has left.
func (c *crashLife) judge(f *crashTarget, t *target, l *Log) {
	sp := t.savepoint()
	if t.doubt {
		c.tally.Doubts++
	}
	if sp.Acked().Total > f.position.Total && f.known && sp.Outcome.Dropped[Budget] <= f.dropped {
		c.fail("the savepoint of %s is at %v, ahead of what had an outcome: %v", f.name, sp.Acked(), f.position)
	}
	if f.position.Commit > f.told && sp.Outcome.Dropped[Budget] == 0 && c.options.MaxBytes == 0 && f.opts.MaxBacklog == 0 && f.told > 0 {
		c.fail("the savepoint of %s moved to %d, beyond %d, which was told", f.name, f.position.Commit, f.told)
	}
	if sp.High.Commit < f.sent && !t.doubt {
		c.fail("%s was sent commit %d, its reservation went to %d", f.name, f.sent, sp.High.Commit)
	}
	if g := t.ledger(l.head()); !g.Balanced() {
		c.fail("the ledger of %s does not add up after a crash: %+v", f.name, g)
	}
}

// balanced judges a target's ledger.
func (c *crashLife) balanced(f *crashTarget) {
	g := f.r.Ledger()
	if !g.Balanced() {
		c.fail("the ledger of %s does not add up: %+v", f.name, g)
	}
	if most := c.mostDamage(); g.Dropped[Damage] > most {
		c.fail("%d samples of %s count as damage, %d may", g.Dropped[Damage], f.name, most)
	}
	if g.Dropped[PowerCut] > c.lostSamples {
		c.fail("%d samples of %s count as lost to power cuts, %d were", g.Dropped[PowerCut], f.name, c.lostSamples)
	}
}

// sender delivers until ctx ends.
func (c *crashLife) sender(ctx context.Context, f *crashTarget, rng *rand.Rand) {
	rounds := 1 << 30
	if f.only {
		rounds = 3
	}
	for ; rounds > 0 && pause(ctx, rng, f.pace); rounds-- {
		if rng.IntN(10) == 0 {
			f.r.Rewind()
			f.pass++
			f.at = f.r.target.position()
		}
		for n := rng.IntN(12); n > 0 && !c.off && f.at.Commit < f.r.Head().Commit; n-- {
			if !c.deliver(ctx, f, rng) {
				return
			}
		}
	}
}

// deliver delivers one entry; false if ctx has ended meanwhile.
func (c *crashLife) deliver(ctx context.Context, f *crashTarget, rng *rand.Rand) bool {
	e, err := f.r.Next(ctx)
	if err != nil {
		return false
	}
	if e.End.Commit <= f.at.Commit {
		c.fail("%s read commit %d after %d", f.name, e.End.Commit, f.at.Commit)
	}
	f.at = e.End
	id, end, outcome := c.identify(e), e.End, e.Missing
	outcome.Delivered = e.Count()
	for !c.reserve(f, end) {
		if !pause(ctx, rng, 20*time.Millisecond) {
			return false
		}
	}
	f.sent = max(f.sent, end.Commit)
	if id >= 0 {
		c.receive(f, id)
	}
	// The answer takes its time, and a crash may come before it.
	if rng.IntN(2) == 0 && !pause(ctx, rng, 5*time.Millisecond) || c.off {
		return false
	}
	f.r.Advance(end, outcome)
	f.told = max(f.told, end.Commit)
	c.balanced(f)
	return true
}

// reserve is true when what ends there may be sent.
func (c *crashLife) reserve(f *crashTarget, end Mark) bool {
	return !c.saving && // see machine
		c.save(func() error { return f.r.Reserve(end) }) == nil && !c.off
}

// receive is the receiver: what it has survives every crash of the sender.
func (c *crashLife) receive(f *crashTarget, id int) {
	for len(f.received) <= id {
		f.received = append(f.received, 0)
	}
	if f.received[id] == f.pass {
		c.fail("%s got commit %d twice in one pass", f.name, id)
	}
	f.received[id] = f.pass
	if o := &c.commits[id]; o.lost || o.over {
		c.fail("%s got commit %d, which was lost or refused", f.name, id)
	}
}

// drain delivers everything, and judges what has come of it all.
func (c *crashLife) drain(ctx context.Context, f *crashTarget) {
	rng := rand.New(rand.NewPCG(1, 1))
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	for f.at.Commit < f.r.Head().Commit && c.broken == nil {
		if !c.deliver(ctx, f, rng) {
			c.fail("%s reads nothing after commit %d, the head is %d", f.name, f.at.Commit, f.r.Head().Commit)
		}
	}
	g := f.r.Ledger()
	if g.Pending != 0 {
		c.fail("%s has %d samples pending at the end", f.name, g.Pending)
	}
	var missing uint64
	for id, o := range c.commits {
		came := id < len(f.received) && f.received[id] > 0 || id < len(f.since) && f.since[id]
		if o.fate == acked && !o.lost && !came {
			missing += uint64(o.samples)
		}
	}
	if missing > g.Dropped[Budget] {
		c.fail("%d samples never came to %s, and its ledger says %+v", missing, f.name, g)
	}
}
