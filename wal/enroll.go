package wal

import (
	"fmt"
	"path/filepath"
	"slices"
)

// Enrolment is one target of the configuration.
type Enrolment struct {
	Name    string
	StartAt StartAt // applies to a target without a savepoint only

	// Family enrols the members that the log knows as well, see [Log.EnrollMember]; they
	// need not be in the list.
	Family bool
}

// Enroll says which targets the configuration has, all of them. When it returns nil,
// each has a savepoint of this log that a power cut cannot take. So nothing that is
// committed from then on can pass one of them by, whether its reader is open or not and
// however often the process restarts: a segment goes when the target is done with it, or
// for the budget, which is in its ledger.
//
// A target that is not in the list, and whose reader is closed, is an orphan. After an
// error nothing has changed: what was enrolled still is, and the targets that were made are gone again.
func (l *Log) Enroll(list []Enrolment) error {
	// No segment may go between the moment at which a target begins with it and the one
	// from which the target is seen to need it.
	l.budget.mu.Lock()
	defer l.budget.mu.Unlock()
	if err := l.targets.enroll(l, list); err != nil {
		return fmt.Errorf("keep savepoints in %s: %w", filepath.Join(l.base.Path(), savepointDir), err)
	}
	return nil
}

// enroll is [Log.Enroll].
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
		if err != nil && len(made) > 0 {
			err = fmt.Errorf("target %q: %w", made[0].name, err)
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
	ts.store.FoundAll()
	for _, tg := range made {
		ts.store.Found(tg.name)
	}
	return nil
}

// withMembersLocked is the list with the members of its families.
func (ts *targets) withMembersLocked(list []Enrolment) []Enrolment {
	all := slices.Clone(list)
	for _, e := range list {
		for _, t := range ts.all() {
			if e.Family && memberOf(e.Name, t.name) {
				all = append(all, Enrolment{Name: t.name})
			}
		}
	}
	return all
}

// withdrawLocked removes targets that could not be made durable.
func (ts *targets) withdrawLocked(list ...*target) {
	for _, tg := range list {
		tg.retire(true)
		ts.set(tg.name, nil)
	}
	ts.store.Renew()
}
