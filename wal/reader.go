package wal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// ErrClosed is the error of everything that is asked of a closed log or reader.
var ErrClosed = errors.New("log is closed")

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

// How long a reader waits before it tries again to read what the disk refused, and
// how often it tries before it takes an unreadable page for damage.
const (
	readRetryFirst = 100 * time.Millisecond
	readRetryMax   = 5 * time.Second
	readRetries    = 10
)

// Reader is one target's end of the log: it reads entries in order and keeps the
// target's savepoint and ledger. Next and Rewind are for one goroutine at a time, the
// other methods for any.
type Reader struct {
	tail   tail
	log    *slog.Logger
	now    func() time.Time
	target *target

	closing context.Context // ends when Close is called
	close   context.CancelFunc

	nextMu sync.Mutex // held by Next, Rewind, and Close at its end
	cursor *cursor
	placed bool // cursor is where it should be

	failures int // how often the disk has refused in a row

	pending pendingTimes
}

// open opens the reader of a target. A target that the registry does not know gets a
// savepoint, which is durable before open returns.
func (ts *targets) open(t tail, name string, o ReaderOptions) (*Reader, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	tg, err := ts.prepare(t, name, o)
	if err != nil {
		return nil, fmt.Errorf("open target %q: %w", name, err)
	}
	if err := tg.save(); err != nil {
		tg.leave(ts.o.Now())
		return nil, fmt.Errorf("open target %q: %w", name, err)
	}
	log := ts.o.Logger.With("target", name)
	closing, cancel := context.WithCancel(context.Background())
	return &Reader{
		tail: t, log: log, now: ts.o.Now, target: tg,
		closing: closing, close: cancel, cursor: newCursor(t, log),
	}, nil
}

// prepare finds or makes the target and opens it; mu is held.
func (ts *targets) prepare(t tail, name string, o ReaderOptions) (*target, error) {
	tg, err := ts.find(t, name, o.StartAt)
	if err != nil {
		return nil, err
	}
	return tg, tg.enter(t.head(), ts.o.Now(), o.MaxBacklog)
}

// find finds the target, or makes it with a savepoint that is durable. A savepoint that
// says nothing about this log is replaced, which is not durable yet; mu is held.
func (ts *targets) find(t tail, name string, at StartAt) (*target, error) {
	tg := ts.byName[name]
	if tg == nil {
		for _, other := range ts.byName {
			if other.adoptedFrom() != name {
				continue
			}
			if err := ts.finishAdoption(other); err != nil {
				return nil, err // the new one would be taken for what it adopted
			}
		}
		start := t.head()
		if at == StartOldest {
			var err error
			if start, err = oldest(t); err != nil {
				return nil, err
			}
		}
		now := ts.o.Now()
		sp := Savepoint{Start: start, High: start}
		f, err := createSavepointFile(ts.dir, storedSavepoint{Name: name, LastOpen: now.UnixMilli(), Savepoint: sp})
		if err != nil {
			return nil, err
		}
		tg = &target{name: name, file: f, sp: sp, acked: start, high: start, lastOpen: now, touched: now}
		ts.byName[name] = tg
	}
	if was := tg.savepoint().Start.Log; tg.isLost() || was != t.head().Log {
		start, err := oldest(t)
		if err != nil {
			return nil, err
		}
		if !tg.isLost() {
			ts.o.Logger.Error("Savepoint belongs to another log: the target gets everything that this one has",
				"target", name, "log", was.String())
		}
		tg.replace(Savepoint{Start: start, High: start})
	}
	return tg, nil
}

// Next blocks until there is a commit after the last one returned, and returns it.
// The entry is valid until the following call. The error is ctx's or ErrClosed; what
// is damaged is skipped and reported in the entry. While the disk refuses to be read,
// Next keeps trying.
func (r *Reader) Next(ctx context.Context) (*Entry, error) {
	r.nextMu.Lock()
	defer r.nextMu.Unlock()
	for {
		if r.closing.Err() != nil {
			return nil, ErrClosed
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		past, e, err := r.step()
		if err == nil {
			r.failures = 0
		}
		switch {
		case e != nil:
			return e, nil
		case err != nil:
			err = r.retry(ctx, err)
		default:
			err = r.wait(ctx, past)
		}
		if err != nil {
			return nil, err
		}
	}
}

// step reads one entry if there is one up to the head. Otherwise it says what to
// wait for.
func (r *Reader) step() (past Mark, e *Entry, err error) {
	// The savepoint is ahead of the cursor when the log let data go.
	if acked := r.target.position(); !r.placed || acked.Commit > r.cursor.last.Commit {
		r.cursor.place(acked)
		if !r.placed {
			r.pending.restart()
		}
		r.placed = true
	}
	head := r.tail.head()
	if head.Commit <= r.cursor.last.Commit {
		return r.cursor.last, nil, nil
	}
	if e, err = r.cursor.next(head); e != nil {
		r.pending.add(e)
	}
	return head, e, err
}

// wait blocks until the head is past that mark.
func (r *Reader) wait(ctx context.Context, past Mark) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.closing, cancel)()
	err := r.tail.wait(ctx, past)
	if r.closing.Err() != nil {
		return ErrClosed
	}
	return err
}

// retry waits after the disk refused to be read. A page that it refuses for long is
// given up as damage, one at a time; a segment that cannot be opened is not.
func (r *Reader) retry(ctx context.Context, cause error) error {
	r.failures++
	if r.failures == 1 {
		r.log.Error("Cannot read the log; trying again", "err", cause)
	}
	if r.failures > readRetries && r.cursor.giveUp() {
		r.log.Error("Giving up an unreadable page of the log", "err", cause)
		r.failures = 0
		return nil
	}
	delay := time.NewTimer(min(readRetryFirst<<min(r.failures-1, 10), readRetryMax))
	defer delay.Stop()
	select {
	case <-delay.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-r.closing.Done():
		return ErrClosed
	}
}

// Rewind makes Next start again after the savepoint's acknowledged mark. No outcomes
// of what was read before may be reported afterwards.
func (r *Reader) Rewind() {
	r.nextMu.Lock()
	defer r.nextMu.Unlock()
	r.target.rewound()
	r.placed = false
}

// Reserve makes durable that everything up to high may have been sent. It returns at
// once when an earlier reservation covers high; otherwise it takes one fsync. After an
// error nothing beyond the last good reservation may be sent.
//
// A disk that has refused savepoints for two seconds, a read-only one above all, is not
// waited for: what can still be read from it had better be sent. Then a crash may make the
// next process send samples again without knowing that they may be stored already.
func (r *Reader) Reserve(high Mark) error { return r.target.reserve(high) }

// SetShards says how many shards will send what is reserved from now on. It is durable
// with the next reservation, so it costs nothing of its own.
func (r *Reader) SetShards(n int) { r.target.setShards(n) }

// Advance records that everything up to and including to has its final outcome, which
// counts the samples since the mark advanced to before. It is durable within a second.
//
// What the log has let go meanwhile stays let go: to may lie in it or beyond it. Its
// samples were counted as dropped; those whose outcome is reported here count as that.
//
// Invariant: outcome.Sum() is the number of samples in the entries that it stands for,
// what was missing from them included.
func (r *Reader) Advance(to Mark, outcome Outcome) {
	r.target.advance(to, outcome)
	r.pending.settle(r.target.position())
}

// Savepoint is the present savepoint, including what is not durable yet.
func (r *Reader) Savepoint() Savepoint { return r.target.savepoint() }

// Head is the mark of the last commit in the log.
func (r *Reader) Head() Mark { return r.tail.head() }

// Ledger is the target's account at the log's head.
func (r *Reader) Ledger() Ledger { return r.target.ledger(r.tail.head()) }

// Pending is how many bytes of the log lie between the acknowledged mark and the head.
func (r *Reader) Pending() int64 {
	return pendingBytes(r.tail.segments(), r.target.position(), r.tail.head())
}

// OldestPending is the timestamp of the oldest sample without a final outcome among
// those that were read; the zero time if there is none. It may be somewhat earlier
// when a great many entries wait.
func (r *Reader) OldestPending() time.Time {
	r.pending.settle(r.target.position()) // the log may have let it go
	return r.pending.oldest()
}

// Skipped is what the reader met since it was opened: bytes of the log skipped as
// damage, in the segments that it has finished, and segment numbers that were missing.
// The samples that this cost are in the ledger.
func (r *Reader) Skipped() (bytes, segments int64) {
	return r.cursor.damaged.Load(), r.cursor.holes.Load()
}

// Close ends Next, makes the savepoint durable and leaves the target to the registry,
// which keeps its queue for a while. It may be called more than once.
func (r *Reader) Close() error {
	if r.closing.Err() != nil {
		return nil
	}
	r.close()
	r.nextMu.Lock()
	defer r.nextMu.Unlock()
	r.cursor.close()
	r.target.leave(r.now())
	return r.target.save()
}
