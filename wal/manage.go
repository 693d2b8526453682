package wal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hwsagent/wal/queue"
)

// Errors of operations on a target's queue. Other errors wrap them.
var (
	ErrNoTarget = errors.New("the log has no queue of this target")
	ErrWanted   = errors.New("target is in use")
	ErrOwnData  = errors.New("target has a queue of its own")

	errSavepointDamaged = errors.New("its savepoint is unreadable")
)

// Pause durably pauses sending to a target, or resumes it. The log only stores the state, across
// restarts and adoption of the queue; the owner of the target's reader must check
// [Log.PausedSince].
func (l *Log) Pause(name string, paused bool) error {
	t, err := l.targets.known(name)
	if err != nil {
		return fmt.Errorf("pause target %q: %w", name, err)
	}
	before := t.pausedSince()
	after := before
	if paused == before.IsZero() {
		after = time.Time{}
		if paused {
			after = l.targets.o.Now()
		}
	}
	t.pause(after)
	if err := t.save(); err != nil {
		t.pause(before)
		return fmt.Errorf("pause target %q: %w", name, err)
	}
	return nil
}

// PausedSince is the time since which sending to a target is paused; zero if it is not.
func (l *Log) PausedSince(name string) time.Time {
	t, err := l.targets.known(name)
	if err != nil {
		return time.Time{}
	}
	return t.pausedSince()
}

// Stretch is the beginning of a target's queue, up to a mark.
type Stretch struct {
	End      Mark      // of the stretch
	Samples  uint64    // in it, without a final outcome
	Bytes    int64     // of the log
	From, To time.Time // timestamps of its oldest and newest sample; zero if it has none
	Rest     time.Time // timestamp of the oldest sample in the first commit after it; zero if there is none
}

// Before finds the beginning of a target's queue in which all samples have timestamps before t:
// it ends before the first commit with a later sample. Before is read-only and reads the log up to
// that commit, which takes about a minute for some gigabytes. After each commit it calls progress
// with the bytes read and the pending bytes. If ctx ends first, the error is that of ctx.
func (l *Log) Before(ctx context.Context, name string, t time.Time, progress func(read, of int64)) (Stretch, error) {
	tg, err := l.targets.known(name)
	if err != nil {
		return Stretch{}, fmt.Errorf("look at target %q: %w", name, err)
	}
	sp := tg.savepoint()
	head := l.head()
	if sp.Start.Log != head.Log {
		return Stretch{}, fmt.Errorf("look at target %q: its savepoint belongs to another log", name)
	}
	c := newSilentCursor(l)
	defer c.release()
	acked := sp.Acked()
	c.place(acked, Mark{})
	s := Stretch{End: acked}
	segments := l.segments()
	all := sp.PendingBytes(segments, head)
	for {
		e, err := c.next(head)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return s, fmt.Errorf("look at target %q: %w", name, err)
		}
		if e == nil {
			break
		}
		if e.Count() > 0 {
			if e.MaxT >= t.UnixMilli() {
				s.Rest = time.UnixMilli(e.MinT)
				break
			}
			s.spread(time.UnixMilli(e.MinT), time.UnixMilli(e.MaxT))
		}
		s.End = e.End
		progress(max(0, all-queue.BytesAfter(segments, e.End, head)), all)
	}
	s.Bytes = sp.PendingBytes(segments, s.End)
	s.Samples = sp.Settle(s.End)
	return s, nil
}

func (s *Stretch) spread(from, to time.Time) {
	if s.From.IsZero() || from.Before(s.From) {
		s.From = from
	}
	if to.After(s.To) {
		s.To = to
	}
}

// Skip drops the pending samples of a target up to and including end, which [Log.Before] found.
// The n samples without a final outcome count as dropped with reason Skipped. The change is
// durable when the error is nil. An open reader continues after end.
func (l *Log) Skip(name string, end Mark) (n uint64, err error) {
	// The lock prevents Adopt, so the target keeps its name.
	l.budget.mu.Lock()
	defer l.budget.mu.Unlock()
	t, err := l.targets.known(name)
	if err != nil {
		return 0, fmt.Errorf("skip at target %q: %w", name, err)
	}
	if t.savepoint().Start.Log != end.Log || end.Commit > l.head().Commit {
		return 0, fmt.Errorf("skip at target %q: %s is not a place in this log", name, end.Position)
	}
	n, _ = t.drop(end, queue.Skipped)
	if err := t.save(); err != nil {
		return n, fmt.Errorf("skip at target %q: %w", name, err)
	}
	return n, nil
}

// Forget removes the queue of a target that is neither enrolled nor open, and returns its
// last ledger. Pending samples are discarded.
func (l *Log) Forget(name string) (queue.Ledger, error) {
	// No segment goes meanwhile: if the removal fails, the target still needs its segments.
	l.budget.mu.Lock()
	defer l.budget.mu.Unlock()
	head := l.head()
	ts := l.targets
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.get(name)
	if t == nil {
		return queue.Ledger{}, fmt.Errorf("drop target %q: %w", name, ErrNoTarget)
	}
	if _, orphan := t.orphaned(); !orphan {
		return queue.Ledger{}, fmt.Errorf("drop target %q: %w", name, ErrWanted)
	}
	account := t.ledger(head)
	if err := ts.removeLocked(t); err != nil {
		return account, fmt.Errorf("drop target %q: %w", name, err)
	}
	return account, nil
}

// known returns a target whose savepoint is usable.
func (ts *targets) known(name string) (*target, error) {
	t := ts.get(name)
	switch {
	case t == nil && ts.store.IsLost():
		return nil, errSavepointDamaged
	case t == nil:
		return nil, ErrNoTarget
	}
	return t, nil
}

// pause sets the time since which sending is paused; zero resumes it.
func (t *target) pause(since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.paused.Equal(since) {
		t.paused = since
		t.version++
	}
}

func (t *target) pausedSince() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.paused
}
