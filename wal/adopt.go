package wal

import (
	"errors"
	"fmt"
)

// Adopt gives the queue of one target to another, and with it ledger and pause: the target
// was renamed. Neither may be open. The new one may have a queue, if that is no more than
// what was collected since the old one was last served: then everything in it waits in the
// adopted one, too. Otherwise the error is ErrOwnData, for two queues do not become one.
//
// Both changes are one record, so that after a crash at any moment one of the two has the queue. After an error nothing has
// changed.
func (l *Log) Adopt(from, to string) error {
	// What the budget lets go meanwhile would be counted for the one that is gone.
	l.budget.mu.Lock()
	defer l.budget.mu.Unlock()
	if err := l.targets.adopt(from, to); err != nil {
		return fmt.Errorf("give the queue of target %q to %q: %w", from, to, err)
	}
	return nil
}

// adopt is [Log.Adopt].
func (ts *targets) adopt(from, to string) error {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	old, was := ts.get(from), ts.get(to)
	switch {
	case from == to:
		return errors.New("they are the same")
	case old == nil && ts.store.IsLost(from):
		return errSavepointDamaged
	case old == nil:
		return fmt.Errorf("%w %q", ErrNoTarget, from)
	}
	if err := CheckName(to); err != nil {
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

// bequeath checks that the queue may go to next, which may be nil. It returns what is to be stored for next.
func (t *target) bequeath(next *target) (st storedSavepoint, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open {
		return st, fmt.Errorf("%w: %q", ErrWanted, t.name)
	}
	st = t.storedLocked()
	st.Savepoint = t.sp.clone()
	st.Orphan = 0
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
		st.High, st.Shards = next.sp.High, 0
	}
	if st.Paused == 0 && !next.paused.IsZero() {
		st.Paused = next.paused.UnixMilli()
	}
	return st, nil
}

// retire says whether the target is gone.
func (t *target) retire(gone bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone = gone
	t.version++ // if it is not, a record may have said that it was
}

func (t *target) isEnrolled() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.enrolled
}
