package wal

import (
	"errors"
	"fmt"
	"maps"
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
// error nothing has changed: what was enrolled still is, and the savepoints that were
// made have been removed. One that the disk refuses to remove is an orphan's.
func (l *Log) Enroll(list []Enrolment) error {
	// No segment may go between the moment at which a target begins with it and the one
	// from which the target is seen to need it.
	l.budget.mu.Lock()
	defer l.budget.mu.Unlock()
	if err := l.targets.enroll(l, list); err != nil {
		return fmt.Errorf("keep savepoints in %s: %w", filepath.Join(l.base.path, savepointDir), err)
	}
	return nil
}

// enroll is [Log.Enroll].
func (ts *targets) enroll(t tail, list []Enrolment) error {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	enrolled := make(map[*target]bool, len(list))
	var made []*target
	for _, e := range ts.withMembers(list) {
		known := ts.byName[e.Name] != nil
		tg, err := ts.find(t, e.Name, e.StartAt)
		if err == nil {
			if !known {
				made = append(made, tg)
			}
			err = tg.save() // of a savepoint that had to be replaced
		}
		if err != nil {
			return errors.Join(fmt.Errorf("target %q: %w", e.Name, err), ts.withdraw(made))
		}
		enrolled[tg] = true
	}
	now := ts.o.Now()
	for _, tg := range ts.byName {
		tg.enroll(enrolled[tg], now)
	}
	return nil
}

// withMembers is the list with the members of its families; ts.mu is held.
func (ts *targets) withMembers(list []Enrolment) []Enrolment {
	all := slices.Clone(list)
	for _, e := range list {
		for _, name := range slices.Sorted(maps.Keys(ts.byName)) {
			if e.Family && memberOf(e.Name, name) {
				all = append(all, Enrolment{Name: name})
			}
		}
	}
	return all
}

// withdraw removes targets that nobody has opened; ts.mu is held.
func (ts *targets) withdraw(list []*target) error {
	var errs []error
	for _, tg := range list {
		if err := tg.remove(); err != nil {
			errs = append(errs, fmt.Errorf("target %q: %w", tg.name, err))
			continue
		}
		delete(ts.byName, tg.name)
	}
	return errors.Join(errs...)
}
