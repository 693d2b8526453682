package wal

import (
	"fmt"
	"path/filepath"

	"hwsagent/wal/internal/segment"
	"hwsagent/wal/queue"
)

// Members maps the members of a family that have a queue in the log, by name without that of
// the family, to the number of the commit before their first.
func (l *Log) Members(family string) map[string]uint64 {
	members := map[string]uint64{}
	for _, t := range l.targets.all() {
		if member, ok := queue.MemberOf(family, t.name); ok {
			members[member] = t.savepoint().Start.Commit
		}
	}
	return members
}

// Scout returns a reader that reads the log from the position of the target named as the
// family. It has no durable savepoint: it acknowledges nothing, and the queue of the target
// does not change. The family must be enrolled. Only the methods Next, Savepoint, Advance, Head
// and Close of the reader are useful.
func (l *Log) Scout(family string) (*Reader, error) {
	t, err := l.targets.known(family)
	if err != nil {
		return nil, fmt.Errorf("read the log for target %q: %w", family, err)
	}
	sp := t.savepoint()
	start := sp.Acked()
	// The shadow target is not registered, and gone keeps it from being written.
	shadow := &target{name: family, store: l.targets.store, sp: queue.Savepoint{Start: start, High: start}, gone: true}
	return l.targets.reader(l, shadow), nil
}

// EnrollMember enrols a member of an enrolled family, to begin after that mark. When it
// returns nil, the member has a durable savepoint, as after [Log.Enroll]. The member begins
// later if the log has already dropped data after the mark. A member that the log knows
// keeps its position. from is the number of the commit before its first.
func (l *Log) EnrollMember(family, member string, after Mark) (from uint64, err error) {
	// For the reason given in Enroll.
	l.budget.mu.Lock()
	defer l.budget.mu.Unlock()
	from, err = l.targets.enrollMember(l, family, queue.Member(family, member), after)
	if err != nil {
		return 0, fmt.Errorf("keep a savepoint of target %q in %s: %w", queue.Member(family, member), filepath.Join(l.base.Path(), savepointDir), err)
	}
	return from, nil
}

// enrollMember implements [Log.EnrollMember].
func (ts *targets) enrollMember(t tail, family, name string, after Mark) (from uint64, err error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	base := ts.get(family)
	if base == nil || !base.isEnrolled() || !queue.IsMember(family, name) {
		return 0, ErrNoTarget
	}
	tg, made, err := ts.findAtLocked(t, name, func() (Mark, error) {
		if all := t.segments(); len(all) == 0 || all[0].Number <= after.Segment {
			return after, nil
		}
		oldest, err := oldest(t)
		return segment.Later(after, oldest), err
	})
	if err != nil {
		return 0, err
	}
	if err := tg.save(); err != nil {
		if made {
			ts.withdrawLocked(tg)
		}
		return 0, err
	}
	tg.enroll(true, ts.o.Now())
	return tg.savepoint().Start.Commit, nil
}

// Release removes the queue of a member that is not open, although its family is enrolled.
// Pending samples are discarded.
func (l *Log) Release(family, member string) error {
	name := queue.Member(family, member)
	l.budget.mu.Lock() // as in Forget
	defer l.budget.mu.Unlock()
	ts := l.targets
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.get(name)
	if t == nil || !queue.IsMember(family, name) {
		return fmt.Errorf("release target %q: %w", name, ErrNoTarget)
	}
	if t.isOpen() {
		return fmt.Errorf("release target %q: %w", name, ErrWanted)
	}
	if err := ts.removeLocked(t); err != nil {
		return fmt.Errorf("release target %q: %w", name, err)
	}
	return nil
}

func (t *target) isOpen() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open
}
