package wal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hwsagent/wal/internal/savefile"
)

// ErrClosed is the error of everything that is asked of a closed log or reader.
var ErrClosed = savefile.ErrClosed

// errReaderOpen says that a target was opened twice.
var errReaderOpen = errors.New("target is open already")

// StartAt is where a target begins that the log does not know yet.
type StartAt uint8

// The places to begin at.
const (
	StartNow    StartAt = iota // after the last commit
	StartOldest                // with the oldest data that is kept
)

// ReaderOptions are the settings of one target's reader.
type ReaderOptions struct {
	// StartAt applies to a target without a savepoint only.
	StartAt StartAt

	// MaxBacklog lets the oldest segments go, for this target only, while more than so
	// many bytes of the log are undelivered; 0 means no limit. The last segment is never
	// let go.
	MaxBacklog int64
}

// Reader is one target's end of the log: it reads entries in order and keeps the
// target's savepoint and ledger. The methods of the [Lane] that it has are those of what
// follows the newest sample with a final outcome; where there is no [Reader.Backlog],
// which is so until somebody calls [Reader.Split], that is everything that waits.
type Reader struct {
	*Lane
	behind *Lane

	now   func() time.Time
	close context.CancelFunc
}

// open opens the reader of a target. A target that the registry does not know gets a
// savepoint, which is durable before open returns.
func (ts *targets) open(t tail, name string, o ReaderOptions) (*Reader, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	tg, made, err := ts.findLocked(t, name, o.StartAt)
	if err == nil {
		err = tg.enter(t.head(), ts.o.Now(), o.MaxBacklog)
	}
	if err != nil {
		return nil, fmt.Errorf("open target %q: %w", name, err)
	}
	if !made {
		ts.store.Write(tg)
	} else if err := tg.save(); err != nil {
		tg.leave(ts.o.Now())
		ts.withdrawLocked(tg)
		return nil, fmt.Errorf("open target %q: %w", name, err)
	} else {
		ts.store.Found(tg.name)
	}
	return ts.reader(t, tg), nil
}

// reader makes the reader of a target.
func (ts *targets) reader(t tail, tg *target) *Reader {
	log := ts.o.Logger.With("target", tg.name)
	closing, cancel := context.WithCancel(context.Background())
	lane := func(kind laneKind) *Lane {
		return &Lane{kind: kind, tail: t, log: log, target: tg, closing: closing, cursor: newCursor(t, log)}
	}
	return &Reader{Lane: lane(live), behind: lane(backlog), now: ts.o.Now, close: cancel}
}

// findLocked finds the target, or makes it.
func (ts *targets) findLocked(t tail, name string, at StartAt) (tg *target, made bool, err error) {
	return ts.findAtLocked(t, name, func() (Mark, error) {
		if at == StartOldest {
			return oldest(t)
		}
		return t.head(), nil
	})
}

// findAtLocked finds the target, or makes it so that it begins at start. If its savepoint is lost, or says nothing about this
// log, it begins with the oldest data. What was made or changed is to be saved.
func (ts *targets) findAtLocked(t tail, name string, start func() (Mark, error)) (tg *target, made bool, err error) {
	tg = ts.get(name)
	foreign := tg != nil && tg.savepoint().Start.Log != t.head().Log
	lost := tg == nil && ts.store.IsLost(name)
	if tg != nil && !foreign {
		return tg, false, nil
	}
	if err := CheckName(name); err != nil {
		return nil, false, err
	}
	if foreign || lost {
		start = func() (Mark, error) { return oldest(t) }
	}
	at, err := start()
	if err != nil {
		return nil, false, err
	}
	sp := Savepoint{Start: at, High: at}
	if foreign {
		ts.o.Logger.Error("Savepoint belongs to another log: the target gets everything that this one has",
			"target", name, "log", tg.savepoint().Start.Log.String())
		tg.replace(sp)
		return tg, false, nil
	}
	if lost {
		ts.o.Logger.Error("The savepoint is unreadable: the target will get everything that the log still has, so a part of it twice", "target", name)
		sp.doubtHigh(t.head())
	}
	tg = newTarget(ts.store, name, storedSavepoint{LastOpen: ts.o.Now().UnixMilli(), Savepoint: sp})
	ts.set(name, tg)
	return tg, true, nil
}

// Savepoint is the present savepoint, including what is not durable yet.
func (r *Reader) Savepoint() Savepoint { return r.target.savepoint() }

// Ledger is the target's account at the log's head.
func (r *Reader) Ledger() Ledger { return r.target.ledger(r.tail.head()) }

// Backlog is the lane of what a split has left behind, oldest first. It is there from the
// beginning and reads nothing unless there is a backlog.
func (r *Reader) Backlog() *Lane { return r.behind }

// Split leaves everything that waits to the backlog, so that what is given to the log from
// now on is read first. It is false, and nothing has changed, if nothing waits, if something
// behind the head may have been sent, or if the backlog has too many pieces already. It
// becomes durable with the next reservation, so before anything is sent. No outcomes of
// what was read by this lane before may be reported afterwards; the backlog's may.
func (r *Reader) Split() bool {
	r.nextMu.Lock()
	defer r.nextMu.Unlock()
	if !r.target.split(r.tail.head()) {
		return false
	}
	r.placed = false
	return true
}

// Pending is how many bytes of the log hold what has no final outcome.
func (r *Reader) Pending() int64 { return r.target.pendingBytes(r.tail.segments(), r.tail.head()) }

// OldestPending is the timestamp of the oldest sample without a final outcome among
// those that were read. It may be somewhat earlier when a great many entries wait. If none was read of what waits
// it is when the segment began where that begins, which is where the log let the older ones go; else the
// zero time.
func (r *Reader) OldestPending() time.Time {
	if _, ok := r.behind.Reach(); ok {
		if t := r.behind.oldestPending(); !t.IsZero() {
			return t
		}
	}
	if t := r.oldestPending(); !t.IsZero() {
		return t
	}
	return r.oldestUnread()
}

// oldestUnread is when what waits was given to the log, if that is the beginning of a segment.
func (r *Reader) oldestUnread() time.Time {
	sp := r.Savepoint()
	open := sp.open(r.tail.head())
	if len(open) == 0 {
		return time.Time{}
	}
	from := open[0].From
	for _, s := range r.tail.segments() {
		switch {
		case s.Number > from.Segment:
			return s.Created()
		case s.Number == from.Segment && s.End > from.Offset:
			return time.Time{}
		}
	}
	return time.Time{}
}

// Skipped is what the reader met since it was opened: bytes of the log skipped as
// damage, in the segments that it has finished, and segment numbers that were missing.
// The samples that this cost are in the ledger.
func (r *Reader) Skipped() (bytes, segments int64) {
	for _, l := range []*Lane{r.Lane, r.behind} {
		bytes, segments = bytes+l.cursor.damaged.Load(), segments+l.cursor.holes.Load()
	}
	return bytes, segments
}

// SetControl changes what is kept beside the target's position, see [Savepoint]. It is written with whatever changes next.
func (r *Reader) SetControl(b []byte) error { return r.target.setControl(b) }

// Close ends Next, writes the savepoint, which is durable within a second, and leaves the target to the registry,
// which keeps its queue for a while. It may be called more than once.
func (r *Reader) Close() error {
	if r.closing.Err() != nil {
		return nil
	}
	r.close()
	for _, l := range []*Lane{r.Lane, r.behind} {
		l.nextMu.Lock()
		defer l.nextMu.Unlock()
		l.cursor.release()
	}
	r.target.leave(r.now())
	r.target.store.Write(r.target)
	return nil
}
