package wal

import (
	"fmt"
	"sync"
	"time"

	"hwsagent/wal/internal/savefile"
	"hwsagent/wal/internal/segment"
	"hwsagent/wal/queue"
)

// target is the savepoint and the ledger of one target, in memory.
type target struct {
	name  string
	store *savefile.Store

	mu sync.Mutex // never held during I/O
	sp queue.Savepoint

	doubt bool // a newer savepoint may have been lost

	open       bool
	lanes      []*Lane   // of the open reader
	enrolled   bool      // in the configuration, so not an orphan even while it is not open
	maxBacklog int64     // bytes; 0: no limit
	lastUsed   time.Time // when it was last enrolled or open
	usedSaved  time.Time // lastUsed in the newest record

	paused time.Time // since when sending is paused, by the wall clock; zero: not paused

	// gone means that the queue was removed or belongs to another target: this target is no
	// longer used.
	gone bool

	version uint64 // of the record's content: grows with each change
	written uint64 // the last version written; 0: none
	acked   Mark   // the durable acknowledged mark: older segments may be deleted
}

// newTarget returns a target whose savepoint is not written yet.
func newTarget(store *savefile.Store, name string, st queue.Stored) *target {
	return &target{
		name: name, store: store, sp: st.Savepoint, lastUsed: time.UnixMilli(st.LastOpen), usedSaved: time.UnixMilli(st.LastOpen),
		paused: st.PausedSince(), acked: st.Start, version: 1,
	}
}

// save makes the savepoint durable if it has changed.
func (t *target) save() error {
	if err := t.store.Sync(t.store.Write(t)); err != nil {
		return fmt.Errorf("save savepoint of target %q: %w", t.name, err)
	}
	return nil
}

// Name is the target's name. It and the following methods implement [savefile.Target].
func (t *target) Name() string { return t.name }

// Encode appends the savepoint to b, and marks it as written.
func (t *target) Encode(b []byte, always bool) (body []byte, acked Mark, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone || t.version == t.written && !always {
		return b, acked, false
	}
	t.written, t.usedSaved = t.version, t.lastUsed
	return queue.AppendSavepoint(b, t.storedLocked()), t.sp.Acked(), true
}

// Unwritten marks the savepoint as changed, so that it is written again.
func (t *target) Unwritten() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.version++
}

// RelyOn records that a record is durable.
func (t *target) RelyOn(acked Mark) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.acked = acked
}

// storedLocked returns the content of the target's record.
func (t *target) storedLocked() queue.Stored {
	st := queue.Stored{Savepoint: t.sp, LastOpen: t.lastUsed.UnixMilli()}
	if !t.paused.IsZero() {
		st.Paused = t.paused.UnixMilli()
	}
	return st
}

func (t *target) savepoint() queue.Savepoint {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sp.Clone()
}

func (t *target) position() Mark {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sp.Acked()
}

// needs is the oldest segment that the target may still need, even after a crash.
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

// pendingBytes is the number of bytes in the segments pending for the target, up to head.
func (t *target) pendingBytes(segments []segment.Info, head Mark) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sp.PendingBytes(segments, head)
}

// drop drops all samples up to and including end, for the reason why. moved is true if the
// target was behind end; n samples had no final outcome.
func (t *target) drop(end Mark, why queue.Reason) (n uint64, moved bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.sp.Acked()
	// The target may be at end although the number of end is greater: the numbers between are of commits lost to a power cut.
	there := at.SegmentID == end.SegmentID && at.SegmentID != (ID{}) && at.Offset >= end.Offset
	if t.gone || there || at.Commit >= end.Commit {
		return 0, false
	}
	n = t.sp.Settle(end)
	t.sp.Outcome.Dropped[why] += n
	t.version++
	return n, true
}

// ledger returns the ledger for that head of the log.
func (t *target) ledger(head Mark) queue.Ledger {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sp.Ledger(head)
}

// replace replaces an unusable savepoint. All samples after the new one may have been
// sent.
func (t *target) replace(sp queue.Savepoint) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sp, t.doubt = sp, true
	t.version++
}

// enroll sets whether the configuration has the target.
func (t *target) enroll(has bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if has != t.enrolled {
		t.enrolled, t.lastUsed = has, now
		t.version++
	}
}

// enter marks the target as open.
func (t *target) enter(head Mark, now time.Time, maxBacklog int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open {
		return errReaderOpen
	}
	t.resolveLocked(head)
	t.open, t.maxBacklog, t.lastUsed = true, maxBacklog, now
	t.version++
	return nil
}

// resolveLocked extends High if a newer savepoint may have been lost.
func (t *target) resolveLocked(head Mark) {
	if t.doubt {
		t.sp.DoubtHigh(head)
		t.doubt = false
		t.version++
	}
}

// leave marks the target as not open.
func (t *target) leave(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open, t.lastUsed, t.lanes = false, now, nil
	t.version++
}

// reading returns the lanes of the open reader, none if it is not open.
func (t *target) reading() []*Lane {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lanes
}

// usedEvery is the interval at which the savepoint of a target in use is written although it has not changed otherwise, so that a
// target that leaves the configuration is an orphan from then on.
const usedEvery = time.Hour

// touch records that the target is in use, if it is.
func (t *target) touch(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.wantedLocked() {
		return
	}
	t.lastUsed = now
	if age := now.Sub(t.usedSaved); age >= usedEvery || age < 0 {
		t.usedSaved = now
		t.version++
	}
}

// wantedLocked reports whether the target is not an orphan.
func (t *target) wantedLocked() bool { return t.open || t.enrolled }

// orphaned returns when the target was last enrolled or open; ok is false if it is not an orphan.
func (t *target) orphaned() (since time.Time, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lastUsed, !t.wantedLocked()
}
