package wal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Errors of what people do with a target's queue. Others wrap them.
var (
	ErrNoTarget = errors.New("the log has no queue of this target")
	ErrWanted   = errors.New("target is in use")
	ErrOwnData  = errors.New("target has a queue of its own")

	errSavepointDamaged = errors.New("its savepoint is unreadable")
)

// Pause makes durable that nothing shall be sent to a target, or that it shall again. The
// log only keeps it, over restarts and with the queue when that is adopted; whoever opens
// the target's reader looks at [Log.PausedSince].
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

// PausedSince is since when nothing shall be sent to a target; zero if it shall.
func (l *Log) PausedSince(name string) time.Time {
	t, err := l.targets.known(name)
	if err != nil {
		return time.Time{}
	}
	return t.pausedSince()
}

// Stretch is what waits for a target at the beginning of its queue, up to a mark.
type Stretch struct {
	End      Mark      // of the stretch
	Samples  uint64    // in it, without a final outcome
	Bytes    int64     // of the log
	From, To time.Time // timestamps of its oldest and newest sample; zero if it has none
	Rest     time.Time // timestamp of the oldest sample in the first commit after it; zero if there is none
}

// Before finds the beginning of a target's queue of which every sample has a timestamp before
// t: it ends in front of the first commit with a later one. It changes nothing, and reads the
// log that far, which takes a minute for some gigabytes. After each commit it calls progress with
// the bytes that it has read, of those that wait. If ctx ends first, the error is that of ctx.
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
	c := newCursor(l, slog.New(slog.DiscardHandler)) // the cursor that delivers reports damage
	defer c.release()
	acked := sp.Acked()
	c.place(acked, Mark{})
	s := Stretch{End: acked}
	segments := l.segments()
	all := pendingBytes(segments, &sp, head)
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
		progress(max(0, all-bytesAfter(segments, e.End, head)), all)
	}
	s.Bytes = pendingBytes(segments, &sp, s.End)
	s.Samples = sp.settle(s.End)
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

// Skip lets go what waits for a target up to and including end, which [Log.Before] found:
// what has no final outcome yet counts as dropped, and is Skipped. n says how many samples
// that are; it is durable when the error is nil. A reader that is open goes on behind end.
func (l *Log) Skip(name string, end Mark) (n uint64, err error) {
	// No target may get another name meanwhile.
	l.budget.mu.Lock()
	defer l.budget.mu.Unlock()
	t, err := l.targets.known(name)
	if err != nil {
		return 0, fmt.Errorf("skip at target %q: %w", name, err)
	}
	if t.savepoint().Start.Log != end.Log || end.Commit > l.head().Commit {
		return 0, fmt.Errorf("skip at target %q: %s is no place in this log", name, end.Position)
	}
	n, _ = t.drop(end, Skipped)
	if err := t.save(); err != nil {
		return n, fmt.Errorf("skip at target %q: %w", name, err)
	}
	return n, nil
}

// Forget removes the queue of a target that is neither enrolled nor open. It returns its
// last account: what is pending in it nobody gets.
func (l *Log) Forget(name string) (Ledger, error) {
	head := l.head()
	ts := l.targets
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.get(name)
	if t == nil {
		return Ledger{}, fmt.Errorf("drop target %q: %w", name, ErrNoTarget)
	}
	if _, _, orphan := t.orphaned(); !orphan {
		return Ledger{}, fmt.Errorf("drop target %q: %w", name, ErrWanted)
	}
	account := t.ledger(head)
	if err := ts.removeLocked(t); err != nil {
		return account, fmt.Errorf("drop target %q: %w", name, err)
	}
	return account, nil
}

// known is a target whose savepoint can be used.
func (ts *targets) known(name string) (*target, error) {
	t := ts.get(name)
	switch {
	case t == nil && ts.store.IsLost(name):
		return nil, errSavepointDamaged
	case t == nil:
		return nil, ErrNoTarget
	}
	return t, nil
}

// pause notes since when nothing shall be sent; zero: it shall.
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

// pausedAt is the inverse of what is stored; 0 is the zero time.
func pausedAt(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
