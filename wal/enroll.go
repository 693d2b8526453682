package wal

import (
	"fmt"
	"path/filepath"
	"slices"

	"hwsagent/wal/queue"
)

// Enrolment is one target of the configuration.
type Enrolment struct {
	Name    string
	StartAt StartAt // applies to a target without a savepoint only

	// Family enrols the members that the log knows too, see [Log.EnrollMember]; the list
	// need not name them.
	Family bool
}

// Enroll sets the complete list of configured targets. When it returns nil, each has a
// savepoint of this log on the disk: a new one is durable, and one that Open found is made durable as soon as the disk
// lets it. From then on no target misses a commit, whether its
// reader is open or not and across restarts: a segment is removed only when the target
// has finished it, or for the budget, and then the target's ledger counts its samples.
//
// A target that is not in the list and whose reader is closed is an orphan. After an error
// the previous enrolment still holds, and targets created by this call are removed again.
func (l *Log) Enroll(list []Enrolment) error {
	// The budget must not remove the segment in which a target begins before the target is
	// registered.
	l.budget.mu.Lock()
	defer l.budget.mu.Unlock()
	if err := l.targets.enroll(l, list); err != nil {
		return fmt.Errorf("keep savepoints in %s: %w", filepath.Join(l.base.Path(), savepointDir), err)
	}
	return nil
}

// enroll implements [Log.Enroll].
func (ts *targets) enroll(t tail, list []Enrolment) error {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	enrolled := make(map[*target]bool, len(list))
	var made []*target
	err := ts.store.Check()
	if err != nil {
		return err
	}
	for _, e := range ts.withMembersLocked(list) {
		var tg *target
		var isNew bool
		if tg, isNew, err = ts.findLocked(t, e.Name, e.StartAt); err != nil {
			err = fmt.Errorf("target %q: %w", e.Name, err)
			break
		}
		if isNew {
			made = append(made, tg)
		}
		enrolled[tg] = true
	}
	if err == nil {
		err = ts.store.Flush(false)
		switch {
		case err != nil && len(made) > 0:
			err = fmt.Errorf("target %q: %w", made[0].name, err)
		case err != nil && !ts.isWaiting():
			// Each target was found on the disk, see begin: a full disk must not keep the log's samples from being sent.
			ts.o.Logger.Error("Cannot make the savepoints durable; retrying each second", "err", err)
			err = nil
		}
	}
	if err != nil {
		ts.withdrawLocked(made...)
		return err
	}
	now := ts.o.Now()
	for _, tg := range ts.all() {
		tg.enroll(enrolled[tg], now)
	}
	ts.stateMu.Lock()
	ts.waiting = false
	ts.stateMu.Unlock()
	ts.store.SetLost(false)
	return nil
}

// withMembersLocked returns the list with the members of its families added.
func (ts *targets) withMembersLocked(list []Enrolment) []Enrolment {
	all := slices.Clone(list)
	for _, e := range list {
		for _, t := range ts.all() {
			if e.Family && queue.IsMember(e.Name, t.name) {
				all = append(all, Enrolment{Name: t.name})
			}
		}
	}
	return all
}

// isWaiting reports whether a target that the log knew may lack its savepoint.
func (ts *targets) isWaiting() bool {
	ts.stateMu.Lock()
	defer ts.stateMu.Unlock()
	return ts.waiting
}

// withdrawLocked removes targets whose savepoints could not be made durable.
func (ts *targets) withdrawLocked(list ...*target) {
	for _, tg := range list {
		tg.retire(true)
		ts.set(tg.name, nil)
	}
	ts.store.Renew()
}
