package wal

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// touchEvery is how often the time at which a target was last wanted, or for how long
// another one has not been, is made durable even if nothing else changes.
const touchEvery = time.Hour

// target is one target's savepoint and ledger, in memory and on disk.
type target struct {
	name string

	fileMu sync.Mutex // held during I/O; taken before mu
	file   *savepointFile

	mu sync.Mutex // never held during I/O
	sp Savepoint

	// lost says that the savepoint was unreadable: the target is placed at the oldest
	// data when it is opened. doubt says that a newer savepoint may have been lost.
	lost, doubt bool

	open       bool
	enrolled   bool      // the configuration has it: not open is not an orphan
	lastOpen   time.Time // by the wall clock, for people: nothing is decided by it
	touched    time.Time // the lastOpen that is durable, or about to be
	maxBacklog int64     // bytes; 0: no limit

	// orphan is for how long this and earlier processes ran while the target was not wanted.
	// A step of the wall clock does not change it, and what passes while no agent runs is
	// not in it: nobody knows how long that was. orphanSaved is what is durable of it, or
	// about to be.
	orphan, orphanSaved time.Duration

	// overtaken is how many samples were let go, by lane and reason, that the sender had read
	// already: their outcomes may still come.
	overtaken [numLanes][NumReasons]uint64

	durable Mark // the last commit of the log that is known to be durable

	paused time.Time // since when nothing shall be sent, by the wall clock; zero: it shall

	// adopted is the name of the target whose savepoint this one took, while that one's file
	// may still be there: it is to be removed, not read.
	adopted string

	// gone says that another target has the queue, or nobody: nothing is done with this one
	// any more.
	gone bool

	version uint64         // of sp and lastOpen: grows with each change
	saved   uint64         // the version that is durable
	acked   Mark           // the acknowledged mark that is durable: what lies before may be deleted
	high    [numLanes]Mark // what is durable of how far each lane may have sent

	unsavedSince time.Time // when saving began to fail; zero if the last save was well
}

// reservePatience is for how long a disk must have refused savepoints before sending
// goes on without them.
const reservePatience = 2 * housekeeping

// loadTarget reads a savepoint file.
func loadTarget(dir directory, name string, info fileInfo, o targetsOptions) (*target, error) {
	f, st, doubt, err := openSavepointFile(dir, info.name)
	if errors.Is(err, errSavepointDamaged) {
		o.Logger.Error("Savepoint is unreadable: the target will get everything that the log still has, so a part of it twice",
			"target", name, "file", info.name)
		return &target{name: name, file: f, lost: true, doubt: true, lastOpen: info.modTime}, nil
	}
	if err != nil {
		return nil, err
	}
	if doubt {
		o.Logger.Warn("One of the two slots of a savepoint was unreadable; the other is used", "target", name, "file", info.name)
	}
	// A process that was killed may not have got as far as syncing what is read now, so it
	// is to be saved before a segment goes because of it.
	last, orphan := time.UnixMilli(st.LastOpen), time.Duration(st.Orphan)*time.Millisecond
	return &target{
		name: name, file: f, sp: st.Savepoint, doubt: doubt, lastOpen: last, touched: last,
		orphan: orphan, orphanSaved: orphan, acked: st.Start, durable: st.Durable, version: 1,
		paused: pausedAt(st.Paused), adopted: st.Adopted,
	}, nil
}

// save makes the savepoint durable if it has changed.
func (t *target) save() error {
	t.fileMu.Lock()
	defer t.fileMu.Unlock()
	t.mu.Lock()
	if t.version == t.saved || t.lost || t.gone {
		t.mu.Unlock()
		return nil
	}
	version, st := t.version, t.stored()
	t.mu.Unlock()

	err := t.file.write(st)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		if t.unsavedSince.IsZero() {
			t.unsavedSince = time.Now()
		}
		return fmt.Errorf("save savepoint of target %q: %w", t.name, err)
	}
	t.unsavedSince = time.Time{}
	t.saved, t.acked, t.high[live] = version, st.Acked(), st.High
	if _, _, ok := st.gap(); ok {
		t.high[backlog] = st.Done[0].High
	}
	return nil
}

// stored is what the file is to hold; mu is held.
func (t *target) stored() storedSavepoint {
	st := storedSavepoint{
		Name: t.name, LastOpen: t.lastOpen.UnixMilli(), Savepoint: t.sp.clone(),
		Orphan: t.orphan.Milliseconds(), Durable: t.durable, Adopted: t.adopted,
	}
	if !t.paused.IsZero() {
		st.Paused = t.paused.UnixMilli()
	}
	return st
}

func (t *target) savepoint() Savepoint {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sp.clone()
}

func (t *target) position() Mark {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sp.Acked()
}

// needs is the oldest segment that the target may still want, after a crash too.
func (t *target) needs() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.acked.Segment
}

func (t *target) isLost() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lost
}

func (t *target) backlogLimit() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.maxBacklog
}

// pendingBytes is how many bytes of the segments wait for the target, up to head.
func (t *target) pendingBytes(segments []segmentRef, head Mark) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return pendingBytes(segments, &t.sp, head)
}

// drop lets everything up to and including end go, for that reason. moved says that the
// target was behind; n samples had no final outcome.
func (t *target) drop(end Mark, why Reason) (n uint64, moved bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost || t.gone || t.sp.Acked().Commit >= end.Commit {
		return 0, false
	}
	last := t.sp.Last().Total
	n = t.sp.settle(end)
	t.sp.Outcome.Dropped[why] += n
	beyond := min(n, t.sp.Last().Total-last)
	t.overtaken[live][why] += beyond
	t.overtaken[backlog][why] += n - beyond
	t.version++
	return n, true
}

// ledger is the account at that head of the log.
func (t *target) ledger(head Mark) Ledger {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := Ledger{Outcome: t.sp.Outcome}
	l.Appended = max(head.Total, t.sp.Last().Total) - t.sp.Start.Total
	l.Pending = l.Appended - min(l.Appended, t.sp.Settled())
	return l
}

// replace gives the target a savepoint in place of one that is of no use. Anything
// after it may have been sent.
func (t *target) replace(sp Savepoint) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sp, t.lost, t.doubt = sp, false, true
	t.version++
}

// enroll says whether the configuration has the target.
func (t *target) enroll(has bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if has != t.enrolled {
		t.enrolled, t.lastOpen = has, now
		t.orphan, t.orphanSaved = 0, 0
		t.version++
	}
}

// enter makes the target an open one.
func (t *target) enter(head Mark, now time.Time, maxBacklog int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open {
		return errReaderOpen
	}
	if t.doubt {
		t.sp.doubtHigh(head)
	}
	t.doubt = false
	t.open, t.lastOpen, t.touched, t.maxBacklog = true, now, now, maxBacklog
	t.orphan, t.orphanSaved = 0, 0
	t.version++
	return nil
}

// leave makes the target an orphan.
func (t *target) leave(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open, t.lastOpen, t.touched = false, now, now
	t.version++
}

// touch notes that the target is wanted at that time, or that it has not been for so much
// longer. ending says that this process looks no more.
func (t *target) touch(now time.Time, passed time.Duration, ending bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.wanted() {
		t.orphan += passed
		if t.orphan-t.orphanSaved >= touchEvery || ending && t.orphan > t.orphanSaved {
			t.orphanSaved = t.orphan
			t.version++
		}
		return
	}
	t.lastOpen = now
	if d := now.Sub(t.touched); t.version != t.saved || d >= touchEvery || d <= -touchEvery {
		t.touched = now
		t.version++
	}
}

// learn notes how much of the log is durable. What no longer changes is not worth a write
// each second, so a target that nobody wants learns it at the end only.
func (t *target) learn(durable Mark, ending bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if (ending || t.wanted()) && durable.Log != (ID{}) && (durable.Log != t.durable.Log || durable.Commit > t.durable.Commit) {
		t.durable = durable
		t.version++
	}
}

func (t *target) knownDurable() Mark {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.durable
}

// wanted says that the target is no orphan; mu is held.
func (t *target) wanted() bool { return t.open || t.enrolled }

// orphaned is when the target was last wanted, as far as the clock could be trusted, and
// for how long it was seen not to be; ok if it is not now.
func (t *target) orphaned() (since time.Time, seen time.Duration, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lastOpen, t.orphan, !t.wanted()
}

// remove removes the savepoint, and no later save brings it back. After an error it may
// be called again.
func (t *target) remove() error {
	t.fileMu.Lock()
	defer t.fileMu.Unlock()
	if err := t.file.remove(); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone = true
	return nil
}

func (t *target) closeFile() error {
	t.fileMu.Lock()
	defer t.fileMu.Unlock()
	return t.file.close()
}
