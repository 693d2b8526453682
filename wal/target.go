package wal

import (
	"fmt"
	"sync"
	"time"

	"hwsagent/wal/internal/savefile"
	"hwsagent/wal/internal/segment"
)

// target is one target's savepoint and ledger, in memory.
type target struct {
	name  string
	store *savefile.Store

	mu sync.Mutex // never held during I/O
	sp Savepoint

	doubt bool // a newer savepoint may have been lost

	open       bool
	enrolled   bool  // the configuration has it, so it is no orphan while it is not open
	maxBacklog int64 // bytes; 0: no limit
	orphan     orphanClock

	// overtaken is how many samples were let go, by lane and reason, that the sender had read
	// already: their outcomes may still come.
	overtaken [numLanes][NumReasons]uint64

	paused time.Time // since when sending is paused, by the wall clock; zero: it is not

	// gone says that another target has the queue, or none has: nothing is done with this one
	// any more.
	gone bool

	version uint64         // of what a record says: grows with each change
	written uint64         // the version that was written last; 0: none was
	acked   Mark           // the acknowledged mark that is durable: what lies before may be deleted
	high    [numLanes]Mark // what is durable of how far each lane may have sent
}

// reservePatience is for how long a disk must have refused savepoints before sending
// goes on without them.
const reservePatience = 2 * housekeeping

// newTarget is a target with a savepoint that is not written yet.
func newTarget(store *savefile.Store, name string, st storedSavepoint) *target {
	return &target{
		name: name, store: store, sp: st.Savepoint, orphan: orphanClockOf(&st),
		paused: pausedAt(st.Paused), acked: st.Start, version: 1,
	}
}

// save makes the savepoint durable if it has changed.
func (t *target) save() error {
	if err := t.store.Sync(t.store.Write(t)); err != nil {
		return fmt.Errorf("save savepoint of target %q: %w", t.name, err)
	}
	return nil
}

// Name is the target's; this and what follows is what [savefile.Target] asks for.
func (t *target) Name() string { return t.name }

// Encode appends the savepoint to b, and takes it for written.
func (t *target) Encode(b []byte, always bool) (body []byte, c savefile.Credit, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone || t.version == t.written && !always {
		return b, c, false
	}
	c = savefile.Credit{First: t.written == 0, Acked: t.sp.Acked(), High: [numLanes]Mark{live: t.sp.High}}
	if _, _, ok := t.sp.gap(); ok {
		c.High[backlog] = t.sp.Done[0].High
	}
	t.written = t.version
	return appendSavepoint(b, t.storedLocked()), c, true
}

// Unwritten has the savepoint written once more.
func (t *target) Unwritten() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.version++
}

// RelyOn notes that a record is durable.
func (t *target) RelyOn(c savefile.Credit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.acked, t.high[live] = c.Acked, c.High[live]
	if c.High[backlog] != (Mark{}) {
		t.high[backlog] = c.High[backlog]
	}
}

// storedLocked is the contents of the target's record.
func (t *target) storedLocked() storedSavepoint {
	st := storedSavepoint{Savepoint: t.sp}
	t.orphan.store(&st)
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

func (t *target) backlogLimit() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.maxBacklog
}

// pendingBytes is how many bytes of the segments wait for the target, up to head.
func (t *target) pendingBytes(segments []segment.Info, head Mark) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return pendingBytes(segments, &t.sp, head)
}

// drop lets everything up to and including end go, for that reason. moved says that the
// target was behind; n samples had no final outcome.
func (t *target) drop(end Mark, why Reason) (n uint64, moved bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.sp.Acked()
	// It may be there although the number of end is greater: those between stand for what a power cut took.
	there := at.SegmentID == end.SegmentID && at.SegmentID != (ID{}) && at.Offset >= end.Offset
	if t.gone || there || at.Commit >= end.Commit {
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
	t.sp, t.doubt = sp, true
	t.version++
}

// enroll says whether the configuration has the target.
func (t *target) enroll(has bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if has != t.enrolled {
		t.enrolled = has
		t.orphan.restart(now)
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
	t.resolveLocked(head)
	t.open, t.maxBacklog = true, maxBacklog
	t.orphan.restart(now)
	t.version++
	return nil
}

// resolveLocked notes what may have been sent if a newer savepoint was lost.
func (t *target) resolveLocked(head Mark) {
	if t.doubt {
		t.sp.doubtHigh(head)
		t.doubt = false
		t.version++
	}
}

// leave makes the target an orphan.
func (t *target) leave(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open = false
	t.orphan.last = now
	t.version++
}

// touch notes that the target is wanted at that time, which is written with whatever changes next, or that it has
// not been for so much longer. ending says that this process looks no more.
func (t *target) touch(now time.Time, passed time.Duration, ending bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.wantedLocked() {
		t.orphan.last = now
	} else if t.orphan.pass(passed, ending) {
		t.version++
	}
}

// wantedLocked reports whether the target is no orphan.
func (t *target) wantedLocked() bool { return t.open || t.enrolled }

// orphaned is when the target was last wanted, as far as the clock could be trusted, and
// for how long it was seen not to be; ok if it is not now.
func (t *target) orphaned() (since time.Time, seen time.Duration, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.orphan.last, t.orphan.ran, !t.wantedLocked()
}
