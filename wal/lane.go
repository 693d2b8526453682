package wal

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"sync"
	"time"
)

// ErrCaughtUp says that a backlog was read to its end, or that there is none (any more).
var ErrCaughtUp = errors.New("the backlog is read")

// How long a reader waits before it tries again to read what the disk refused, and
// how often it tries before it takes an unreadable page for damage.
const (
	readRetryFirst = 100 * time.Millisecond
	readRetryMax   = 5 * time.Second
	readRetries    = 10
)

// Lane reads one stretch of the log for a target, in order, and tells of its outcomes: what
// follows everything that has one, or the oldest gap (see [Reader.Backlog]). Next and Rewind
// are for one goroutine at a time, the other methods for any.
type Lane struct {
	kind   laneKind
	tail   tail
	log    *slog.Logger
	target *target

	closing context.Context // ends when the reader is closed

	nextMu sync.Mutex // held by Next, Rewind, and Reader.Close at its end
	cursor *cursor
	placed bool // cursor is where it should be

	failures int // how often the disk has refused in a row

	pending pendingTimes
}

// Reach is how far a lane has come. Acked is the mark up to which it is done. End is
// where it stops, zero if nowhere. High and Shards are as in [Savepoint]. Missed is how many
// samples have no outcome yet in this gap and those after it.
type Reach struct {
	Acked, End, High Mark
	Shards           int
	Missed           uint64
}

// Reach is how far the lane has come; not ok for a backlog if there is none.
func (l *Lane) Reach() (reach Reach, ok bool) { return l.target.reach(l.kind) }

// Next blocks until there is a commit after the last one returned, and returns it.
// The entry is valid until the following call. The error is ctx's, ErrClosed, or at the
// end of a backlog ErrCaughtUp; after that Rewind goes on to the next one, if there is one
// when all of this one is done. What is damaged is skipped and reported in the entry. While
// the disk refuses to be read, Next keeps trying.
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
			l.cursor.release() // the series of an outage would stay in memory until the next one
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

// step reads one entry if there is one up to the head. Otherwise it says what to
// wait for.
func (l *Lane) step() (past Mark, e *Entry, err error) {
	at, ok := l.Reach()
	if !ok || l.placed && at.End.Commit != l.cursor.end.Commit {
		return past, nil, ErrCaughtUp // the gap that was read is none any more
	}
	// The savepoint is ahead of the cursor when the log let data go.
	if !l.placed || at.Acked.Commit > l.cursor.last.Commit {
		l.cursor.place(at.Acked, at.End)
		if !l.placed {
			l.pending.restart()
		}
		l.placed = true
	}
	head := l.tail.head()
	switch {
	case l.cursor.arrived():
		return past, nil, ErrCaughtUp
	case head.Commit <= l.cursor.last.Commit:
		return l.cursor.last, nil, nil
	}
	if e, err = l.cursor.next(head); e != nil {
		l.pending.add(e)
	}
	return head, e, err
}

// wait blocks until the head is past that mark.
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

// retry waits after the disk refused to be read. A page that it refuses for long is
// given up as damage, one at a time; a segment that cannot be opened is not.
func (l *Lane) retry(ctx context.Context, cause error) error {
	l.failures++
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

// Rewind makes Next start again after what is done of the stretch. No outcomes
// of what was read before may be reported afterwards.
func (l *Lane) Rewind() {
	l.nextMu.Lock()
	defer l.nextMu.Unlock()
	l.target.rewound(l.kind)
	l.placed = false
}

// Reserve makes durable that everything up to high may have been sent. It returns at
// once when an earlier reservation covers high; otherwise it takes one fsync. After an
// error nothing beyond the last good reservation may be sent.
//
// A disk that has refused savepoints for two seconds, a read-only one above all, is not
// waited for: what can still be read from it had better be sent. Then a crash may make the
// next process send samples again without knowing that they may be stored already.
func (l *Lane) Reserve(high Mark) error { return l.target.reserve(l.kind, high) }

// SetShards says how many shards will send what is reserved from now on. It is durable
// with the next reservation, so it costs nothing of its own.
func (l *Lane) SetShards(n int) { l.target.setShards(l.kind, n) }

// Advance records that everything up to and including to has its final outcome, which
// counts the samples since the mark advanced to before. It is durable within a second.
//
// What the log has let go meanwhile stays let go: to may lie in it or beyond it. Its
// samples were counted as dropped; those whose outcome is reported here count as that.
//
// Invariant: outcome.Sum() is the number of samples in the entries that it stands for,
// what was missing from them included.
func (l *Lane) Advance(to Mark, outcome Outcome) {
	l.target.advance(l.kind, to, outcome)
	l.settleTimes()
}

// Head is the mark of the last commit in the log.
func (l *Lane) Head() Mark { return l.tail.head() }

// oldestPending is the timestamp of the oldest sample without a final outcome among those
// that the lane has read; the zero time if there is none.
func (l *Lane) oldestPending() time.Time {
	l.settleTimes() // the log may have let it go
	return l.pending.oldest()
}

// settleTimes forgets the times of what is done.
func (l *Lane) settleTimes() {
	if reach, ok := l.Reach(); ok {
		l.pending.settle(reach.Acked)
	} else {
		l.pending.settle(Mark{Commit: math.MaxUint64})
	}
}
