package wal

import (
	"errors"
	"fmt"
	"io/fs"
)

// Adopt gives the queue of one target to another, and with it ledger and pause: the target
// was renamed. Neither may be open. The new one may have a queue, if that is no more than
// what was collected since the old one was last served: then everything in it waits in the
// adopted one, too. Otherwise the error is ErrOwnData, for two queues do not become one.
//
// On disk the new savepoint says from whom it was taken, and is durable before the old one
// is removed. So after a crash at any moment one of the two has the queue: the old one as
// long as the new savepoint is not whole, then the new one, since whoever opens the log
// removes the other. When Adopt returns nil that has happened, or is being tried again
// each second because the disk refuses it.
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
	old, next := ts.byName[from], ts.byName[to]
	switch {
	case from == to:
		return errors.New("they are the same")
	case old == nil:
		return fmt.Errorf("%w %q", ErrNoTarget, from)
	case old.isLost():
		return errSavepointDamaged
	}
	// What is half done must be over before a savepoint is taken from somebody again.
	for _, t := range ts.byName {
		if err := ts.finishAdoption(t); err != nil {
			return err
		}
	}
	st, err := old.giveUp(next)
	if err != nil {
		return err
	}
	st.Name, st.Adopted, st.LastOpen = to, from, ts.o.Now().UnixMilli()
	if next, err = ts.take(next, st); err != nil {
		old.keepOn()
		return err
	}
	next.enroll(old.isEnrolled() || next.isEnrolled(), ts.o.Now())
	delete(ts.byName, from)
	ts.byName[to] = next
	if err := errors.Join(old.closeFile(), ts.finishAdoption(next)); err != nil {
		ts.o.Logger.Warn("Cannot remove the savepoint of a target that was renamed; trying again", "target", from, "now", to, "err", err)
	}
	return nil
}

// giveUp checks that the queue may go to next, which may be nil, and ends this target. What
// it returns is to be stored for next.
func (t *target) giveUp(next *target) (st storedSavepoint, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open {
		return st, fmt.Errorf("%w: %q", ErrWanted, t.name)
	}
	st = t.stored()
	if next != nil {
		next.mu.Lock()
		defer next.mu.Unlock()
		switch {
		case next.open:
			return st, fmt.Errorf("%w: %q", ErrWanted, next.name)
		case next.lost, next.sp.Outcome.Sum() > 0, next.sp.Start.Log != t.sp.Start.Log, next.sp.Start.Total < t.sp.Last().Total:
			return st, fmt.Errorf("%w: %q", ErrOwnData, next.name)
		}
		if next.sp.High.Commit > st.High.Commit {
			st.High, st.Shards = next.sp.High, 0
		}
		if st.Paused == 0 && !next.paused.IsZero() {
			st.Paused = next.paused.UnixMilli()
		}
	}
	st.Orphan = 0
	t.gone = true
	return st, nil
}

// keepOn takes giveUp back.
func (t *target) keepOn() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone = false
}

// take makes st durable as the savepoint of t, which it makes if it is nil.
func (ts *targets) take(t *target, st storedSavepoint) (*target, error) {
	if t == nil {
		f, err := createSavepointFile(ts.dir, st)
		if err != nil {
			return nil, err
		}
		t = &target{name: st.Name, file: f}
	} else if err := t.rewrite(st); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sp, t.acked, t.high, t.durable = st.Savepoint, st.Acked(), [numLanes]Mark{live: st.High}, st.Durable
	t.paused, t.adopted = pausedAt(st.Paused), st.Adopted
	t.orphan, t.orphanSaved, t.overtaken = 0, 0, [numLanes][NumReasons]uint64{}
	t.version++
	t.saved = t.version
	return t, nil
}

// rewrite writes a savepoint in place of the one that the target has.
func (t *target) rewrite(st storedSavepoint) error {
	t.fileMu.Lock()
	defer t.fileMu.Unlock()
	err := t.file.write(st)
	if err != nil {
		t.mu.Lock()
		t.version++ // it may have reached the disk: the next save writes over it
		t.mu.Unlock()
	}
	return err
}

// finishAdoption removes the savepoint that t's was taken from, if that may be there, and
// then forgets where it came from. ts.mu is held, so that no target of that name is made
// meanwhile.
func (ts *targets) finishAdoption(t *target) error {
	from := t.adoptedFrom()
	if from == "" {
		return nil
	}
	name, err := escapeName(from)
	if err != nil {
		return err
	}
	// What a killed process left may not be durable yet.
	if err := t.save(); err != nil {
		return err
	}
	if err := ts.dir.remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove savepoint: %w", err)
	}
	if err := ts.dir.sync(); err != nil {
		return fmt.Errorf("remove savepoint: %w", err)
	}
	t.mu.Lock()
	t.adopted = ""
	t.version++
	t.mu.Unlock()
	if err := t.save(); err != nil {
		t.mu.Lock()
		t.adopted = from // it says so on disk
		t.mu.Unlock()
		return err
	}
	return nil
}

// finishAdoptions is finishAdoption for all.
func (ts *targets) finishAdoptions() error {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	var errs []error
	for _, t := range ts.byName {
		errs = append(errs, ts.finishAdoption(t))
	}
	return errors.Join(errs...)
}

// disinherit drops from the targets that were read those whose queue another one has taken.
// Where the one that was taken from has gone on since, the other one's claim was never
// answered for (an error of the disk, then a crash): both stay, each with an account of
// its own.
func (ts *targets) disinherit() error {
	var errs []error
	for _, t := range ts.byName {
		old := ts.byName[t.adoptedFrom()]
		if t.adoptedFrom() == "" || old == nil {
			continue
		}
		if !old.isLost() && supersedes(old.savepoint(), t.savepoint()) {
			t.mu.Lock()
			t.adopted, t.doubt = "", true
			t.version++
			t.mu.Unlock()
			continue
		}
		old.mu.Lock()
		old.gone = true
		old.mu.Unlock()
		delete(ts.byName, old.name)
		errs = append(errs, old.closeFile())
	}
	return errors.Join(errs...)
}

// supersedes reports whether a savepoint has gone on since the other one was taken from it.
func supersedes(old, taken Savepoint) bool {
	return old.Start.Log == taken.Start.Log && old.Settled() > taken.Settled()
}

func (t *target) adoptedFrom() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.adopted
}

func (t *target) isEnrolled() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.enrolled
}
