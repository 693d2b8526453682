package wal

import (
	"fmt"
	"path/filepath"
	"strings"

	"hwsagent/wal/internal/segment"
)

// A family is a target and those that are found as the log is read: their names are the
// target's, a slash, and something without one. One entry of the configuration stands for
// all of them, see [Enrolment].

// Member is the name of a member of a family.
func Member(family, member string) string { return family + "/" + member }

// MemberOf is the inverse of Member; ok if the name is that of a member of the family.
func MemberOf(family, name string) (member string, ok bool) {
	member, ok = strings.CutPrefix(name, family+"/")
	return member, ok && member != "" && !strings.Contains(member, "/")
}

// memberOf reports whether a name is that of a member of the family.
func memberOf(family, name string) bool {
	_, ok := MemberOf(family, name)
	return ok
}

// Members are the members of a family that the log has a queue of, without the family's
// name, and where each begins, by the number of the commit before its first.
func (l *Log) Members(family string) map[string]uint64 {
	members := map[string]uint64{}
	for _, t := range l.targets.all() {
		if member, ok := MemberOf(family, t.name); ok {
			members[member] = t.savepoint().Start.Commit
		}
	}
	return members
}

// Scout reads the log for a family, from where the target of the family's own name is. It
// has no savepoint: what it reads is not acknowledged by that, and the target keeps what it
// has to read. The family must be enrolled. Of the reader's methods only Next, Savepoint,
// Advance, Head and Close are of use.
func (l *Log) Scout(family string) (*Reader, error) {
	t, err := l.targets.known(family)
	if err != nil {
		return nil, fmt.Errorf("read the log for target %q: %w", family, err)
	}
	sp := t.savepoint()
	start := sp.Acked()
	// No one else knows it, and gone keeps it from being written.
	shadow := &target{name: family, store: l.targets.store, sp: Savepoint{Start: start, High: start}, gone: true}
	return l.targets.reader(l, shadow), nil
}

// EnrollMember enrols a member of an enrolled family that begins after that mark. When it
// returns nil, the member has a savepoint that a power cut cannot take, as after
// [Log.Enroll]. It begins later only where the log let data go already. A member that the
// log knows keeps its place. from is the number of the commit before its first.
func (l *Log) EnrollMember(family, member string, after Mark) (from uint64, err error) {
	// As in Enroll.
	l.budget.mu.Lock()
	defer l.budget.mu.Unlock()
	from, err = l.targets.enrollMember(l, family, Member(family, member), after)
	if err != nil {
		return 0, fmt.Errorf("keep a savepoint of target %q in %s: %w", Member(family, member), filepath.Join(l.base.Path(), savepointDir), err)
	}
	return from, nil
}

// enrollMember is [Log.EnrollMember].
func (ts *targets) enrollMember(t tail, family, name string, after Mark) (from uint64, err error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	base := ts.get(family)
	if base == nil || !base.isEnrolled() || !memberOf(family, name) {
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
	ts.store.Found(name)
	tg.enroll(true, ts.o.Now())
	return tg.savepoint().Start.Commit, nil
}

// Release removes the queue of a member of a family that is not open, although the family
// is enrolled. What waits in it nobody gets.
func (l *Log) Release(family, member string) error {
	name := Member(family, member)
	ts := l.targets
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.get(name)
	if t == nil || !memberOf(family, name) {
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
