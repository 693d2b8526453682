package remotewrite

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"hwsagent/remotewrite/progress"
)

// The ways in which a window ends that are no error.
var (
	errLetGo   = errors.New("the target is down: its window is let go")
	errReshard = errors.New("the number of shards changes")
)

const (
	// maxEntries bounds the commits in a window.
	maxEntries = 1024
	// maxRounds bounds how often one series is in a window, roughly. It bounds the cost
	// of finding out after a crash what was stored (see package split).
	maxRounds = 24
	// inHand is how many batches a shard is given at hand where there are several: one under
	// way, one to follow, one that fills. Half of its capacity it gets in any case.
	inHand = 3
	// inAll is how many batches all shards of a window are given at most: what a target
	// takes of memory does not grow with its shards alone.
	inAll = 32
	// aheadOf is how many times the samples that wait a window may reach over.
	aheadOf = 4
	// flushFor is how long a window goes on when the queue stops, to send what is waiting.
	flushFor = 600 * time.Millisecond
	// grace is how long requests under way may last when a window ends.
	grace = 450 * time.Millisecond
)

// window is the part of a queue that holds samples: a reader, shards, and the account
// between them. It is made, run and thrown away; what it has not delivered is read
// from the log again by the next one.
type window struct {
	q      *lane
	shards []*shard

	// draining: nothing more is read; shards send what they have at once.
	draining    atomic.Bool
	closing     atomic.Bool // and what is in the log is the last to be read
	ended       atomic.Bool // nothing more will be read
	stopReading context.CancelFunc

	mu       sync.Mutex
	progress *progress.Tracker
	room     chan struct{} // gets a token when samples were settled
	broken   error         // the first wrong outcome: the window cannot be trusted any more
	reserved uint64        // entries up to this one may be sent
	sent     uint64        // the newest entry of which a sample may be stored

	reserveMu sync.Mutex // one Reserve at a time, outside mu: it waits for the disk

	// Of the reader only.
	perShard [][]point
	seen     []bool // by wal.Series.Slot
	active   int    // how many series were seen
	commit   uint64 // of the entry that is being admitted
	unsure   bool   // it may be stored already
	recheck  bool   // a sample of it may have been given up
}

func newWindow(q *lane, shards int) *window {
	w := &window{
		q:        q,
		progress: progress.New(maxEntries, q.cfg.Queue.MaxSamplesPerSend),
		room:     make(chan struct{}, 1),
		perShard: make([][]point, shards),
	}
	for range shards {
		w.shards = append(w.shards, newShard(w))
	}
	return w
}

// run reads and sends until parent ends, and a moment longer (see close), or until the
// window has to be replaced: then it returns errLetGo or errReshard. All goroutines have
// ended.
func (w *window) run(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(parent))
	defer cancel(nil)
	// Requests outlive ctx by a moment: most are about to be answered, and an answer
	// that is heard is a duplicate less.
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(grace, stop) })()

	reading, stopReading := context.WithCancel(ctx)
	defer stopReading()
	w.stopReading = stopReading

	before := w.q.gate.View().Troubles // a shard may fail before watch gets its turn
	var wg sync.WaitGroup
	for _, s := range w.shards {
		wg.Go(func() {
			if err := s.run(ctx, sending); err != nil {
				cancel(err)
			}
		})
	}
	wg.Go(func() { w.watch(ctx, cancel, before) })
	wg.Go(func() { w.close(parent, ctx, cancel) })
	err := w.read(reading)
	if w.closing.Load() {
		err = w.readRest(ctx)
	}
	w.ended.Store(true)
	w.mu.Lock()
	broken := w.broken
	w.mu.Unlock()
	switch {
	case ctx.Err() != nil:
	case broken != nil:
		cancel(broken)
	case w.draining.Load():
		w.flush()
		cancel(w.awaitEmpty(ctx))
	default:
		cancel(err)
	}
	wg.Wait()
	return context.Cause(ctx)
}

// close sends the samples that wait for their batch to fill when the queue stops: the
// agent may never be started again. It ends the window when every sample has its outcome, at the
// first request that fails (the target may be down), or after flushFor. Samples without an outcome
// stay in the log.
func (w *window) close(parent, ctx context.Context, end context.CancelCauseFunc) {
	select {
	case <-ctx.Done():
		return
	case <-parent.Done():
	}
	if w.q.behind {
		end(context.Cause(parent)) // it is read again
		return
	}
	w.closing.Store(true)
	w.q.gate.Hurry()
	w.drain()
	limit, stop := context.WithTimeout(ctx, flushFor)
	defer stop()
	w.q.gate.AwaitTrouble(limit)
	end(context.Cause(parent))
}

// drain ends the window in good order: what was read is delivered first.
func (w *window) drain() {
	w.draining.Store(true)
	w.stopReading()
}

// flush makes the shards send what they have without waiting for more.
func (w *window) flush() {
	for _, s := range w.shards {
		s.flushNow()
	}
}

// awaitEmpty waits until every sample of the window has its outcome: then it returns
// errReshard, and reading may go on where it stopped. Otherwise it returns why not.
func (w *window) awaitEmpty(ctx context.Context) error {
	for {
		w.mu.Lock()
		empty, broken := w.progress.Empty(), w.broken
		w.mu.Unlock()
		switch {
		case broken != nil:
			return broken
		case empty:
			return errReshard
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-w.room:
		}
	}
}
