package wal

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"sync"
	"time"

	"hwsagent/wal/queue"
)

// ErrCaughtUp means that a backlog was read to its end, or that there is none (any more).
var ErrCaughtUp = errors.New("the backlog is read")

// Delays between the retries of a failed read, and the number of retries before an
// unreadable page counts as damage.
const (
	readRetryFirst = 100 * time.Millisecond
	readRetryMax   = 5 * time.Second
	readRetries    = 10
)

// Lane reads one stretch of the log for a target, in order, and records the outcomes of its
// samples. The stretch is either everything after the last sample with a final outcome, or
// the oldest gap (see [Reader.Backlog]). One goroutine at a time may call Next, Rewind and Release; the
// other methods are safe for concurrent use.
type Lane struct {
	kind   queue.Lane
	tail   tail
	log    *slog.Logger
	target *target

	closing context.Context // ends when the reader is closed

	nextMu sync.Mutex // held by Next, Rewind, and Reader.Close at its end
	placed bool       // the lane is at the position of the savepoint or after it

	cursor *cursor
	found  *findings

	failures int // consecutive read errors of the disk

	pending pendingTimes
}

// Reach returns the progress of the lane; ok is false for a backlog lane without a backlog.
func (l *Lane) Reach() (reach queue.Reach, ok bool) { return l.target.reach(l.kind) }

// Next blocks until there is a commit after the last one returned, and returns it. The
// entry is read-only, and valid until the following call. The error is that of ctx, ErrClosed, or at the end
// of a backlog ErrCaughtUp. After ErrCaughtUp, and once all of this gap has outcomes, Rewind
// moves to the next gap, if there is one. Next skips damage and reports it in the entry.
// It retries read errors of the disk.
func (l *Lane) Next(ctx context.Context) (*Entry, error) {
	l.nextMu.Lock()
	defer l.nextMu.Unlock()
	for {
		if l.closing.Err() != nil {
			return nil, ErrClosed
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		past, e, err := l.step()
		if err == nil {
			l.failures = 0
		}
		switch {
		case e != nil:
			return e, nil
		case errors.Is(err, ErrCaughtUp):
			l.cursor.release() // otherwise the series of an outage stay in memory until the next one
		case err != nil:
			err = l.retry(ctx, err)
		default:
			err = l.wait(ctx, past)
		}
		if err != nil {
			return nil, err
		}
	}
}

// step reads one entry if there is one up to the head. Otherwise it returns the mark that
// the head must pass.
func (l *Lane) step() (past Mark, e *Entry, err error) {
	at, ok := l.Reach()
	if !ok || l.placed && at.End.Commit != l.cursor.end.Commit {
		return past, nil, ErrCaughtUp // the gap no longer exists
	}
	// The savepoint is ahead of the lane after the log has dropped data.
	if !l.placed || at.Acked.Commit > l.cursor.last.Commit {
		l.cursor.place(at.Acked, at.End)
		if !l.placed {
			l.pending.restart()
		}
		l.placed = true
	}
	head, last := l.tail.head(), l.cursor.last
	switch {
	case l.cursor.arrived():
		return past, nil, ErrCaughtUp
	case head.Commit <= last.Commit:
		return last, nil, nil
	}
	if e, err = l.cursor.next(head); e == nil {
		return head, nil, err
	}
	if at, ok := l.Reach(); !ok || at.Acked.Commit > last.Commit {
		// The log has dropped data after last meanwhile, and e may count it as missing: the ledger has it already.
		if l.placed = false; !ok {
			return past, nil, ErrCaughtUp
		}
		return last, nil, nil
	}
	l.pending.add(e)
	return head, e, nil
}

// wait blocks until the head is beyond that mark.
func (l *Lane) wait(ctx context.Context, past Mark) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.closing, cancel)()
	err := l.tail.wait(ctx, past)
	if l.closing.Err() != nil {
		return ErrClosed
	}
	return err
}

// retry waits after a read error. After readRetries errors it gives up one unreadable page
// as damage; it never gives up a segment that cannot be opened, nor anything while the whole disk fails.
func (l *Lane) retry(ctx context.Context, cause error) error {
	l.failures++
	if l.tail.broken() {
		l.failures = min(l.failures, readRetries/2) // at least five more attempts follow once the disk works again
	}
	if l.failures == 1 {
		l.log.Error("Cannot read the log; trying again", "err", cause)
	}
	if l.failures > readRetries && l.cursor.giveUp() {
		l.log.Error("Giving up an unreadable page of the log", "err", cause)
		l.failures = 0
		return nil
	}
	delay := time.NewTimer(min(readRetryFirst<<min(l.failures-1, 10), readRetryMax))
	defer delay.Stop()
	select {
	case <-delay.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-l.closing.Done():
		return ErrClosed
	}
}

// Rewind makes Next start again after the samples with a final outcome. Outcomes of
// entries read before must not be reported after Rewind. Until Next the lane has no segment open: a full disk gets the
// space of one that the log drops.
func (l *Lane) Rewind() {
	l.nextMu.Lock()
	defer l.nextMu.Unlock()
	l.placed = false
	l.cursor.close()
}

// closeDropped closes the open segment if the log has dropped it: a full disk does not get its space back before. While a target
// takes nothing, minutes may pass until the following Next. A lane that has read the segment to its end still has it open.
func (l *Lane) closeDropped() {
	if !l.nextMu.TryLock() {
		return // a Next that runs goes on behind the dropped samples by itself
	}
	defer l.nextMu.Unlock()
	if at, ok := l.Reach(); !ok || at.Acked.Commit >= l.cursor.last.Commit {
		l.cursor.close()
	}
}

// Release frees the memory that the lane needs for reading, above all its series. Call it before a long pause. The
// present entry is not valid any more. The following Next reads the segment from its beginning again.
func (l *Lane) Release() {
	l.nextMu.Lock()
	defer l.nextMu.Unlock()
	l.cursor.release()
}

// Reserve records that all samples up to high may have been sent: call it before sending them. It takes one write without fsync,
// or none if an earlier reservation covers high. So a kill keeps the reservation, and a power cut may take those of about the last
// second: the next process may then send samples again without knowing that the receiver may have them. The same holds after a kill
// if the disk refuses savepoints, because readable samples should still be sent. The only error is ErrClosed.
func (l *Lane) Reserve(high Mark) error { return l.target.reserve(l.kind, high) }

// Advance records that all samples up to and including to have a final outcome. outcome
// counts those since the previous Advance. The record is durable within a second.
//
// to may be in or beyond data that the log has dropped meanwhile. Its samples were counted as dropped: of the outcome only
// as many count as the savepoint moves by.
//
// Invariant: outcome.Sum() is the number of samples in the entries since the previous
// Advance, including those that the entries count as missing.
func (l *Lane) Advance(to Mark, outcome queue.Outcome) {
	l.target.advance(l.kind, to, outcome)
	l.settleTimes()
}

// Head is the mark of the last commit in the log.
func (l *Lane) Head() Mark { return l.tail.head() }

// oldestPending is the timestamp of the oldest sample without a final outcome among those
// that the lane has read; the zero time if there is none.
func (l *Lane) oldestPending() time.Time {
	l.settleTimes() // the log may have dropped it
	return l.pending.oldest()
}

// settleTimes forgets the times of samples with a final outcome.
func (l *Lane) settleTimes() {
	if reach, ok := l.Reach(); ok {
		l.pending.settle(reach.Acked)
	} else {
		l.pending.settle(Mark{Commit: math.MaxUint64})
	}
}
