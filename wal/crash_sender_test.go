package wal

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"hwsagent/wal/queue"
)

// openTargets opens the targets of the n-th process, and judges their savepoints.
func (c *crashLife) openTargets(l *Log, n int, last bool) {
	for _, f := range c.targets {
		t := l.targets.byName[f.name]
		switch {
		case t == nil && f.known && !f.sure: // a kill ended its enrolment, the next start could not make it durable, and then came a power cut
			*f = crashTarget{name: f.name, opts: f.opts, pace: f.pace, first: f.first, only: f.only, splits: f.splits}
		case t == nil && f.known:
			c.fail("the savepoint of %s, which was durable, is gone", f.name)
		case f.known && l.targets.store.IsLost() && c.machine.fault.IsZero(): // after an error of the disk they may be damaged
			c.fail("savepoints count as lost, that of %s perhaps", f.name)
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
		if err != nil && c.hit() {
			continue
		}
		if err != nil {
			c.fail("open target %s on a good disk: %v", f.name, err)
			return
		}
		if !f.known {
			f.known = true
			f.since = c.absent()
		}
		f.sure = f.sure || !l.targets.undurable
		f.r, f.live.Lane, f.back.Lane = r, r.Lane, r.Backlog()
		f.again(&f.live)
		f.again(&f.back)
		c.balanced(f)
	}
}

// again says that a lane reads again from where it is done.
func (f *crashTarget) again(l *crashLane) {
	f.passes++
	reach, _ := l.Reach()
	l.pass, l.at = f.passes, reach.Acked
}

// judge looks at the savepoint that a crash has left.
func (c *crashLife) judge(f *crashTarget, t *target, l *Log) {
	sp := t.savepoint()
	position := f.saved.Acked()
	if ahead, ok := beyond(sp, f.saved); ok && f.known && sp.Outcome.Dropped[queue.Budget] <= f.saved.Outcome.Dropped[queue.Budget] {
		c.fail("the savepoint of %s has %v, ahead of what had an outcome: %v", f.name, ahead, f.saved.Done)
	}
	if position.Commit > f.told && sp.Outcome.Dropped[queue.Budget] == 0 && c.options.MaxBytes == 0 && f.opts.MaxBacklog == 0 && f.told > 0 {
		c.fail("the savepoint of %s moved to %d, beyond %d, which was told", f.name, position.Commit, f.told)
	}
	if sent := f.live.promised(c.after); sp.High.Commit < sent {
		c.fail("%s was sent commit %d, its reservation went to %d", f.name, sent, sp.High.Commit)
	}
	f.live.forget(sp.High)
	from, to, ok := sp.Gap()
	if sent := f.back.promised(c.after); ok && from.Commit < sent && sent <= to.Commit && sp.Done[0].High.Commit < sent {
		c.fail("%s was sent commit %d of its backlog, its reservation went to %d", f.name, sent, sp.Done[0].High.Commit)
	}
	if !ok {
		f.back.reserved = nil
	} else {
		c.tally.Gaps++
		f.back.forget(sp.Done[0].High)
	}
	if g := t.ledger(l.head()); !g.Balanced() {
		c.fail("the ledger of %s does not add up after a crash: %+v", f.name, g)
	}
}

// beyond finds a range of sp that is not within one of before. A range may end at a later commit with the same total, and so hold no
// further sample: a start moves a savepoint at the end of the log over the numbers of commits that a power cut took, or drops a segment
// without samples for the budget, and may be struck before its target knows. A savepoint without a range is at its start.
func beyond(sp, before queue.Savepoint) (queue.Range, bool) {
	done := before.Done
	if len(done) == 0 {
		done = []queue.Range{{From: before.Start, To: before.Start}}
	}
	for _, r := range sp.Done {
		if r.From.Commit < r.To.Commit && !slices.ContainsFunc(done, func(b queue.Range) bool {
			return b.From.Commit <= r.From.Commit && (r.To.Commit <= b.To.Commit && r.To.Total <= b.To.Total || r.To.Total == b.To.Total)
		}) {
			return r, true
		}
	}
	return queue.Range{}, false
}

// balanced judges a target's ledger.
func (c *crashLife) balanced(f *crashTarget) {
	g := f.r.Ledger()
	if !g.Balanced() {
		c.fail("the ledger of %s does not add up: %+v", f.name, g)
	}
	if most := c.mostDamage(); g.Dropped[queue.Damage] > most {
		c.fail("%d samples of %s count as damage, %d may", g.Dropped[queue.Damage], f.name, most)
	}
	if most := c.lostSamples + c.skipped(f.received); g.Dropped[queue.PowerCut] > most {
		c.fail("%d samples of %s count as lost to power cuts, at most %d were", g.Dropped[queue.PowerCut], f.name, most)
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
			f.again(&f.live)
		}
		if f.splits {
			c.turn(f, rng)
		}
		for n := rng.IntN(12); n > 0 && !c.off; n-- {
			l := &f.live
			if f.splits && rng.IntN(3) > 0 {
				l = &f.back
			}
			if !c.more(f, l) {
				if _, e, _ := l.step(); e != nil { // waiting at the head begins like this
					c.fail("%s reads commit %d beyond the head", f.name, e.End.Commit)
				}
				break
			}
			if !c.deliver(ctx, f, l, rng) {
				return
			}
		}
	}
}

// turn lets the newest come first, or a lane start again.
func (c *crashLife) turn(f *crashTarget, rng *rand.Rand) {
	switch rng.IntN(8) {
	case 0, 1:
		if f.r.Split() {
			f.again(&f.live)
			c.tally.Splits++
		}
	case 2:
		f.back.Rewind()
		f.again(&f.back)
	}
}

// more reports whether a lane has something to read.
func (c *crashLife) more(f *crashTarget, l *crashLane) bool {
	if l == &f.back {
		_, ok := l.Reach()
		return ok
	}
	return l.at.Commit < f.r.Head().Commit
}

// deliver delivers one entry of a lane; false if ctx has ended meanwhile.
func (c *crashLife) deliver(ctx context.Context, f *crashTarget, l *crashLane, rng *rand.Rand) bool {
	e, err := l.Next(ctx)
	if errors.Is(err, ErrCaughtUp) {
		l.Rewind()
		f.again(l)
		return true
	}
	if err != nil {
		return false
	}
	if e.End.Commit <= l.at.Commit {
		c.fail("%s read commit %d after %d", f.name, e.End.Commit, l.at.Commit)
	}
	l.at = e.End
	id, end, outcome := c.identify(e), e.End, e.Missing
	outcome.Delivered = e.Count()
	faults := c.tally.Faults
	for !c.reserve(l, end) {
		if !pause(ctx, rng, 20*time.Millisecond) {
			return false
		}
	}
	if faults == c.tally.Faults {
		l.reserved = append(l.reserved, reserved{end.Commit, time.Now()})
	}
	if id >= 0 {
		c.receive(f, l, id)
	}
	// The answer takes its time, and a crash may come before it.
	if rng.IntN(2) == 0 && !pause(ctx, rng, 5*time.Millisecond) || c.off {
		return false
	}
	if other := &f.live; l == &f.back && rng.IntN(2) == 0 && c.more(f, other) && !c.deliver(ctx, f, other, rng) {
		return false // meanwhile
	}
	l.Advance(end, outcome)
	f.told = max(f.told, end.Commit)
	c.balanced(f)
	return true
}

// reserve is true when what ends there may be sent.
func (c *crashLife) reserve(l *crashLane, end Mark) bool {
	return !c.saving && // see machine
		c.save(func() error { return l.Reserve(end) }) == nil && !c.off
}

// receive is the receiver: what it has survives every crash of the sender.
func (c *crashLife) receive(f *crashTarget, l *crashLane, id int) {
	for len(f.received) <= id {
		f.received = append(f.received, 0)
	}
	if f.received[id] == l.pass {
		c.fail("%s got commit %d twice in one pass", f.name, id)
	}
	f.received[id] = l.pass
	if o := &c.commits[id]; o.lost || o.over {
		c.fail("%s got commit %d, which was lost or refused", f.name, id)
	}
}

// drain delivers everything, and judges what has come of it all.
func (c *crashLife) drain(ctx context.Context, f *crashTarget) {
	rng := rand.New(rand.NewPCG(1, 1))
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	for _, l := range []*crashLane{&f.live, &f.back} {
		for c.more(f, l) && c.broken == nil {
			if !c.deliver(ctx, f, l, rng) {
				c.fail("%s reads nothing after commit %d, the head is %d", f.name, l.at.Commit, f.r.Head().Commit)
			}
		}
	}
	g := f.r.Ledger()
	if g.Pending != 0 {
		c.fail("%s has %d samples pending at the end", f.name, g.Pending)
	}
	var missing uint64
	for id, o := range c.commits {
		came := id < len(f.received) && f.received[id] > 0 || id < len(f.since) && f.since[id]
		if o.fate == acked && !o.lost && !o.extra && !came {
			missing += uint64(o.samples)
		}
	}
	if missing > g.Dropped[queue.Budget] {
		c.fail("%d samples never came to %s, and its ledger says %+v", missing, f.name, g)
	}
}
