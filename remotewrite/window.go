package remotewrite

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"hwsagent/remotewrite/progress"
)

// Reasons for the end of a window that are not errors.
var (
	errLetGo   = errors.New("the target is down: its window is let go")
	errReshard = errors.New("the number of shards changes")
)

const (
	// maxEntries bounds the commits in a window.
	maxEntries = 1024
	// inHand is how many batches one of several shards may hold: one in flight, one to follow, one that fills. It may
	// hold half of the capacity in any case.
	inHand = 3
	// inAll is how many samples all shards of a window may hold together, if it is more than the capacity, so that a target's memory does not
	// grow with the number of its shards.
	inAll = 80_000
	// aheadOf limits the span of a window, as a multiple of the samples that may wait in it.
	aheadOf = 4
	// flushFor is how long a window continues when the queue stops, to send the waiting samples.
	flushFor = 600 * time.Millisecond
	// grace is how long requests in flight may last after a window has ended.
	grace = 450 * time.Millisecond
)

// window is the part of a queue that holds samples: a reader, shards, and the account between them. It is created, run
// and discarded; the next window reads the undelivered samples from the log again.
type window struct {
	lane   *lane
	shards []*shard

	// draining: reading stops; shards send their samples at once.
	draining    atomic.Bool
	closing     atomic.Bool // the queue stops: the rest of the log is read last
	ended       atomic.Bool // reading has ended
	stopReading context.CancelFunc

	mu       sync.Mutex
	progress *progress.Tracker
	room     chan struct{} // gets a token when samples were settled
	broken   error         // the first wrong outcome: the window can no longer be trusted

	highMu sync.Mutex // held while the source records how far samples may be sent, which waits for the disk
	high   uint64     // entries up to this one may be sent

	several atomic.Bool // an entry has several samples of a series: requests are cut where one comes again

	// Used only by the reader.
	perShard [][]point
	round    int     // how often the window was empty
	doubles  []point // samples of the entry being admitted that contradict another one at their time
	again    bool    // the entry has a sample of a series that is held
	asking   asking
	commit   uint64 // of the entry being admitted
	unsure   bool   // that entry is in doubt
}

func newWindow(l *lane, shards int) *window {
	w := &window{
		lane:     l,
		progress: progress.New(maxEntries, l.cfg.Queue.MaxSamplesPerSend),
		room:     make(chan struct{}, 1),
		perShard: make([][]point, shards),
	}
	for range shards {
		w.shards = append(w.shards, newShard(w))
	}
	l.cache.held.empty()
	return w
}

// run reads and sends until parent ends, and a moment longer (see close), or until the window must be replaced. The
// error is the reason, such as errLetGo or errReshard. All goroutines have ended.
func (w *window) run(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(parent))
	defer cancel(nil)
	// Requests outlive ctx by a moment: most are about to be answered, and each answer saves a duplicate.
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(grace, stop) })()

	reading, stopReading := context.WithCancel(ctx)
	defer stopReading()
	w.stopReading = stopReading

	before := w.lane.gate.View().Troubles // a shard may fail before watch starts
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

// close sends the samples that wait for a full batch when the queue stops: the agent may never be started again. It
// ends the window when every sample has its outcome, at the first failed request (the target may be down), or after
// flushFor. Samples without an outcome stay in the log.
func (w *window) close(parent, ctx context.Context, end context.CancelCauseFunc) {
	select {
	case <-ctx.Done():
		return
	case <-parent.Done():
	}
	if w.lane.behind {
		end(context.Cause(parent)) // the samples are read again
		return
	}
	w.closing.Store(true)
	w.lane.gate.Hurry()
	w.drain()
	limit, stop := context.WithTimeout(ctx, flushFor)
	defer stop()
	w.lane.gate.AwaitTrouble(limit)
	end(context.Cause(parent))
}

// drain ends the window in an orderly way: samples already read are delivered first.
func (w *window) drain() {
	w.draining.Store(true)
	w.stopReading()
}

// flush makes the shards send their samples without waiting for more.
func (w *window) flush() {
	for _, s := range w.shards {
		s.flushNow()
	}
}

// awaitEmpty waits until every sample of the window has its outcome. Then it returns errReshard, and reading may
// continue where it stopped. Otherwise it returns the reason.
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
