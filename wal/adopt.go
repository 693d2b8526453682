package wal

import (
	"errors"
	"fmt"

	"hwsagent/wal/queue"
)

// Adopt moves the queue of target from, with its ledger and pause, to target to, for a renamed
// target. Neither may be open. Target to may have a queue of its own only if that begins no
// earlier than the last data served for from and has no outcomes yet: then the adopted queue
// contains all its samples. Otherwise the error is ErrOwnData, because queues are not merged.
//
// Both changes are in one record, so after a crash exactly one of the two has the queue. After an error both are
// unchanged.
func (l *Log) Adopt(from, to string) error {
	// Samples dropped for the budget meanwhile would be counted for the old target.
	l.budget.mu.Lock()
	defer l.budget.mu.Unlock()
	if err := l.targets.adopt(from, to); err != nil {
		return fmt.Errorf("give the queue of target %q to %q: %w", from, to, err)
	}
	return nil
}

// adopt implements [Log.Adopt].
func (ts *targets) adopt(from, to string) error {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	old, was := ts.get(from), ts.get(to)
	switch {
	case from == to:
		return errors.New("they are the same")
	case old == nil && ts.store.IsLost():
		return errSavepointDamaged
	case old == nil:
		return fmt.Errorf("%w %q", ErrNoTarget, from)
	}
	if err := queue.CheckName(to); err != nil {
		return err
	}
	st, err := old.bequeath(was)
	if err != nil {
		return err
	}
	now := ts.o.Now()
	st.LastOpen = now.UnixMilli()
	next := newTarget(ts.store, to, st)
	next.enroll(old.isEnrolled() || was != nil && was.isEnrolled(), now)
	err = ts.store.End(from, next, func() {
		old.retire(true)
		ts.set(from, nil)
		ts.set(to, next)
	})
	if err == nil {
		if was != nil {
			was.retire(true)
		}
		return nil
	}
	ts.set(to, was)
	if was != nil {
		was.Unwritten()
	}
	ts.store.Renew()
	next.retire(true)
	old.retire(false)
	ts.set(from, old)
	return err
}

// bequeath checks that the queue may go to next, which may be nil, and returns the savepoint to store for next.
func (t *target) bequeath(next *target) (st queue.Stored, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open {
		return st, fmt.Errorf("%w: %q", ErrWanted, t.name)
	}
	st = t.storedLocked()
	st.Savepoint = t.sp.Clone()
	if next == nil {
		return st, nil
	}
	next.mu.Lock()
	defer next.mu.Unlock()
	switch {
	case next.open:
		return st, fmt.Errorf("%w: %q", ErrWanted, next.name)
	case next.sp.Outcome.Sum() > 0, next.sp.Start.Log != t.sp.Start.Log, next.sp.Start.Total < t.sp.Last().Total:
		return st, fmt.Errorf("%w: %q", ErrOwnData, next.name)
	}
	if next.sp.High.Commit > st.High.Commit {
		st.High = next.sp.High
	}
	if st.Paused == 0 && !next.paused.IsZero() {
		st.Paused = next.paused.UnixMilli()
	}
	return st, nil
}

// retire sets whether the target is gone.
func (t *target) retire(gone bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone = gone
	t.version++ // after a failed removal, a record on disk may still say that the target is gone
}

func (t *target) isEnrolled() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.enrolled
}
