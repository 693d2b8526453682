package wal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hwsagent/wal/internal/savefile"
	"hwsagent/wal/queue"
)

// ErrClosed is the error of calls to a closed log or reader.
var ErrClosed = savefile.ErrClosed

// errReaderOpen means that a target was opened twice.
var errReaderOpen = errors.New("target is open already")

// StartAt is the start position of a target that is new to the log.
type StartAt uint8

// The start positions.
const (
	StartNow    StartAt = iota // after the last commit
	StartOldest                // at the oldest data that the log has
)

// ReaderOptions are the settings of one target's reader.
type ReaderOptions struct {
	// StartAt applies only to a target without a savepoint.
	StartAt StartAt

	// MaxBacklog is the limit of undelivered bytes of the log; 0 means no limit. Beyond it,
	// the oldest segments are dropped for this target only, but never the last segment.
	MaxBacklog int64
}

// Reader reads the log for one target, in order, and keeps the target's savepoint and
// ledger. Its embedded [Lane] reads the samples after the last one with a final outcome.
// Without a [Reader.Backlog], which only [Reader.Split] creates, these are all pending samples.
type Reader struct {
	*Lane
	behind *Lane

	now   func() time.Time
	close context.CancelFunc
}

// open opens the reader of a target. It creates an unknown target, with a savepoint that is
// durable before open returns.
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
	}
	return ts.reader(t, tg), nil
}

// reader creates the reader of a target.
func (ts *targets) reader(t tail, tg *target) *Reader {
	log := ts.o.Logger.With("target", tg.name)
	closing, cancel := context.WithCancel(context.Background())
	lane := func(kind queue.Lane) *Lane {
		found := newFindings(log)
		return &Lane{
			kind: kind, tail: t, log: log, target: tg, closing: closing,
			cursor: newCursor(t, log, found), found: found,
		}
	}
	r := &Reader{Lane: lane(queue.Live), behind: lane(queue.Backlog), now: ts.o.Now, close: cancel}
	tg.mu.Lock()
	defer tg.mu.Unlock()
	tg.lanes = []*Lane{r.Lane, r.behind}
	return r
}

// findLocked finds the target, or creates it.
func (ts *targets) findLocked(t tail, name string, at StartAt) (tg *target, made bool, err error) {
	return ts.findAtLocked(t, name, func() (Mark, error) {
		if at == StartOldest {
			return oldest(t)
		}
		return t.head(), nil
	})
}

// findAtLocked finds the target, or creates it to begin at start. If its savepoint is lost or belongs to another log, the
// target begins at the oldest data. The caller must save a target that was created or changed.
func (ts *targets) findAtLocked(t tail, name string, start func() (Mark, error)) (tg *target, made bool, err error) {
	tg = ts.get(name)
	foreign := tg != nil && tg.savepoint().Start.Log != t.head().Log
	lost := tg == nil && ts.store.IsLost()
	if tg != nil && !foreign {
		return tg, false, nil
	}
	if err := queue.CheckName(name); err != nil {
		return nil, false, err
	}
	if foreign || lost {
		start = func() (Mark, error) { return oldest(t) }
	}
	at, err := start()
	if err != nil {
		return nil, false, err
	}
	sp := queue.Savepoint{Start: at, High: at}
	if foreign {
		ts.o.Logger.Error("Savepoint belongs to another log: the target gets everything that this one has",
			"target", name, "log", tg.savepoint().Start.Log.String())
		tg.replace(sp)
		return tg, false, nil
	}
	if lost {
		ts.o.Logger.Error("The savepoint is unreadable: the target will get everything that the log still has, so a part of it twice", "target", name)
		sp.DoubtHigh(t.head())
	}
	tg = newTarget(ts.store, name, queue.Stored{LastOpen: ts.o.Now().UnixMilli(), Savepoint: sp})
	ts.set(name, tg)
	return tg, true, nil
}

// Savepoint returns the current savepoint, including changes that are not durable yet.
func (r *Reader) Savepoint() queue.Savepoint { return r.target.savepoint() }

// Ledger returns the target's ledger at the head of the log.
func (r *Reader) Ledger() queue.Ledger { return r.target.ledger(r.tail.head()) }

// Backlog returns the lane that reads the samples left behind by Split, oldest first. The
// lane always exists; without a backlog its Next returns ErrCaughtUp.
func (r *Reader) Backlog() *Lane { return r.behind }

// Split moves all pending samples to the backlog, so that new commits are read first. It
// returns false without a change if no samples are pending, if samples beyond the head may
// have been sent, or if the backlog has too many gaps. The next reservation makes it durable,
// so before anything is sent. Outcomes of entries that this lane read before must not be
// reported after Split; those of the backlog lane may.
func (r *Reader) Split() bool {
	r.nextMu.Lock()
	defer r.nextMu.Unlock()
	if !r.target.split(r.tail.head()) {
		return false
	}
	r.placed = false
	return true
}

// Pending is the number of bytes of the log that hold samples without a final outcome.
func (r *Reader) Pending() int64 { return r.target.pendingBytes(r.tail.segments(), r.tail.head()) }

// OldestPending is the timestamp of the oldest sample without a final outcome among those that
// were read. It may be somewhat earlier if very many entries are pending. If none of the pending
// samples were read, it is the creation time of the segment at whose beginning they start (the log
// dropped the older segments); otherwise the zero time.
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

// oldestUnread is the creation time of the segment in which pending samples begin, if they begin at its start.
func (r *Reader) oldestUnread() time.Time {
	sp := r.Savepoint()
	open := sp.Open(r.tail.head())
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

// Skipped counts, since the reader was opened, the bytes skipped as damage in the segments
// that it has finished, and the missing segment numbers. The ledger counts the lost samples.
func (r *Reader) Skipped() (bytes, segments int64) {
	for _, l := range []*Lane{r.Lane, r.behind} {
		bytes, segments = bytes+l.found.damaged.Load(), segments+l.found.holes.Load()
	}
	return bytes, segments
}

// Close ends Next and writes the savepoint, which is durable within a second. The log keeps the target and its
// queue. Close may be called more than once.
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
