package remotewrite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"hwsagent/wal"
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
	// of finding out after a crash what was stored (see resend.go).
	maxRounds = 24
	// aheadOf is how many times the samples that wait a window may reach over.
	aheadOf = 4
	// grace is how long requests under way may last when a window ends.
	grace = 700 * time.Millisecond
)

// window is the part of a queue that holds samples: a reader, shards, and the Progress
// between them. It is made, run and thrown away; what it has not delivered is read
// from the log again by the next one.
type window struct {
	q      *Queue
	shards []*shard

	// draining: nothing more is read; shards send what they have at once.
	draining    atomic.Bool
	stopReading context.CancelFunc

	mu       sync.Mutex
	progress *Progress
	room     chan struct{} // gets a token when samples were settled
	broken   error         // the first wrong outcome: the window cannot be trusted any more
	reserved uint64        // entries up to this one may be sent
	sent     uint64        // the newest entry of which a sample may be stored

	reserveMu sync.Mutex // one Reserve at a time, outside mu: it waits for the disk

	// Of the reader only.
	perShard [][]point
	seen     []bool // by wal.Series.Slot
	active   int    // how many series were seen
}

func newWindow(q *Queue, shards int) *window {
	w := &window{
		q:        q,
		progress: NewProgress(maxEntries, q.cfg.Queue.MaxSamplesPerSend),
		room:     make(chan struct{}, 1),
		perShard: make([][]point, shards),
	}
	for range shards {
		w.shards = append(w.shards, newShard(w))
	}
	return w
}

// run reads and sends until ctx ends, with ctx's cause, or until the window has to be
// replaced: then it returns errLetGo or errReshard. All goroutines have ended.
func (w *window) run(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	// Requests outlive ctx by a moment: most are about to be answered, and an answer
	// that is heard is a duplicate less.
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(grace, stop) })()

	reading, stopReading := context.WithCancel(ctx)
	defer stopReading()
	w.stopReading = stopReading

	var wg sync.WaitGroup
	for _, s := range w.shards {
		wg.Go(func() {
			if err := s.run(ctx, sending); err != nil {
				cancel(err)
			}
		})
	}
	wg.Go(func() { w.watch(ctx, cancel) })
	err := w.read(reading)
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

// read moves entries from the log into the shards until ctx ends.
func (w *window) read(ctx context.Context) error {
	for {
		if err := w.waitRoom(ctx); err != nil {
			return err
		}
		e, err := w.q.source.Next(ctx)
		if err != nil {
			return err
		}
		w.admit(e)
	}
}

// admit gives every sample of the entry to its shard, or its outcome at once.
func (w *window) admit(e *wal.Entry) {
	q := w.q
	var now wal.Outcome // outcomes that are known at once
	limits := q.limits()

	w.mu.Lock()
	seq := w.progress.Begin(e.End, e.Count(), e.Missing)
	w.mu.Unlock()
	if q.mayBeStored(e.End) {
		for _, s := range w.shards {
			s.unsureUpTo(seq)
		}
	}
	for i := range w.perShard {
		w.perShard[i] = w.perShard[i][:0]
	}
	for i := range e.Samples {
		s := &e.Samples[i]
		if to := w.accept(s.Series, s.T, limits, &now); to != nil {
			w.put(point{series: to, seq: seq, st: s.ST, t: s.T, v: s.V})
		}
	}
	for i := range e.Histograms {
		h := &e.Histograms[i]
		if !q.cfg.SendNativeHistograms || !supported(h) {
			now.Dropped[wal.Unsupported]++
			continue
		}
		to := w.accept(h.Series, h.T, limits, &now)
		if to == nil {
			continue
		}
		// The entry's histograms are the log's: copy what is kept.
		p := point{series: to, seq: seq, st: h.ST, t: h.T, kind: intHistogram, aux: &pointAux{}}
		if h.H != nil {
			p.aux.h = h.H.Copy()
		} else {
			p.kind, p.aux.fh = floatHistogram, h.FH.Copy()
		}
		w.put(p)
	}
	if q.cfg.SendExemplars {
		for i := range e.Exemplars {
			x := &e.Exemplars[i]
			if to := q.cache.get(x.Series); !to.dropped() {
				w.put(point{series: to, seq: seq, t: x.T, v: x.V, kind: exemplarPoint, aux: &pointAux{labels: x.Labels}})
			}
		}
	}
	q.readUpTo(e)
	w.settle(seq, now)
	for i, ps := range w.perShard {
		w.shards[i].push(ps)
	}
}

// accept returns what the series is sent as, or nil after counting why it is not.
func (w *window) accept(s *wal.Series, t int64, l limits, out *wal.Outcome) *series {
	to := w.q.cache.get(s)
	switch {
	case to.dropped():
		out.Filtered++
		return nil
	case t < l.oldest:
		out.Dropped[wal.TooOld]++
		return nil
	case t > l.newest:
		out.Dropped[wal.Future]++
		return nil
	}
	if s.Slot >= len(w.seen) {
		w.seen = append(w.seen, make([]bool, s.Slot+1-len(w.seen))...)
	}
	if !w.seen[s.Slot] {
		w.seen[s.Slot] = true
		w.active++
	}
	return to
}

func (w *window) put(p point) {
	i := p.series.hash % uint64(len(w.shards))
	w.perShard[i] = append(w.perShard[i], p)
}

// waitRoom waits until the window takes another entry. Meanwhile the shards do not wait
// for their batches to fill: they would wait for samples that cannot come.
func (w *window) waitRoom(ctx context.Context) error {
	for waited := false; ; waited = true {
		w.mu.Lock()
		w.progress.SetLimits(w.bounds())
		full, broken := w.progress.Full(), w.broken
		w.mu.Unlock()
		if broken != nil {
			return broken
		}
		if !full {
			return ctx.Err()
		}
		if !waited {
			w.q.metrics.Waited()
			w.flush()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.room:
		}
	}
}

// bounds are the window's, in samples: of those without an outcome, and of all from its
// beginning to its end. A shard that lags stops the others after maxRounds rounds, so
// that no more than that has to be looked through after a crash. What may be stored
// already is read as a whole, however much of it a former window had finished: where a
// receiver refuses empty writes, only its last samples are taken (see hold.go).
func (w *window) bounds() (open, span int) {
	shards := len(w.shards)
	if w.q.moreUnsure() {
		most := aheadOf * w.q.cfg.Queue.Capacity * max(shards, w.q.lanes)
		return most, most
	}
	open = w.q.cfg.Queue.Capacity * shards
	rounds := max(maxRounds*w.active, 1)
	return min(open, rounds), min(aheadOf*open, rounds)
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

// settle gives samples of one entry their outcome and moves the savepoint.
func (w *window) settle(seq uint64, o wal.Outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done(seq, o)
	w.advance()
}

// settleAll gives all points the same outcome: delivered, or dropped for the reason.
func (w *window) settleAll(points []point, o wal.Outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := 0; i < len(points); {
		seq, n := points[i].seq, uint64(0)
		for ; i < len(points) && points[i].seq == seq; i++ {
			if points[i].kind != exemplarPoint {
				n++
			}
		}
		if n > 0 {
			w.done(seq, times(o, n))
		}
	}
	w.advance()
}

// done is Progress.Done; a wrong outcome is a mistake of this package, after which the
// window starts over from the savepoint.
func (w *window) done(seq uint64, o wal.Outcome) {
	if err := w.progress.Done(seq, o); err != nil && w.broken == nil {
		w.broken = fmt.Errorf("account for samples: %w", err)
		w.stopReading() // the log may have nothing more
		w.q.log.Error("The window's account does not add up; starting again from the savepoint", slog.Any("err", err))
	}
}

// advance moves the savepoint over what is finished. w.mu is held, so that marks
// reach the source in order.
func (w *window) advance() {
	if w.broken == nil {
		for {
			mark, out, ok := w.progress.Pop()
			if !ok {
				break
			}
			w.q.source.Advance(mark, out)
			w.q.metrics.Settled(out)
		}
	}
	select {
	case w.room <- struct{}{}:
	default:
	}
}

// reserve makes durable that entries up to seq may have been sent. It reserves all that
// is read, so that the disk is waited for once a window and not once a batch.
func (w *window) reserve(seq uint64) error {
	w.mu.Lock()
	ok := seq <= w.reserved
	w.mu.Unlock()
	if !ok {
		if err := w.reserveMore(seq); err != nil {
			return err
		}
	}
	return nil
}

// mayHave notes that samples of entries up to seq may be stored.
func (w *window) mayHave(seq uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = max(w.sent, seq)
}

func (w *window) reserveMore(seq uint64) error {
	w.reserveMu.Lock()
	defer w.reserveMu.Unlock()
	w.mu.Lock()
	newest := w.progress.Newest()
	mark, ok := w.progress.Mark(newest)
	// What has left the window has its outcome: exemplars may come after that.
	_, within := w.progress.Mark(seq)
	done := seq <= w.reserved || !within
	w.mu.Unlock()
	if done {
		return nil
	}
	if !ok {
		return fmt.Errorf("reserve up to entry %d: not in the window", newest)
	}
	if err := w.q.source.Reserve(mark); err != nil {
		return fmt.Errorf("save how far samples may have been sent: %w", err)
	}
	w.mu.Lock()
	w.reserved = newest
	w.mu.Unlock()
	return nil
}

// sentMark is the end of the newest entry of which anything may be stored, if that is
// still in the window.
func (w *window) sentMark() (wal.Mark, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.progress.Mark(w.sent)
}

// readAll reports whether everything that may be stored already is in the window, or as
// much of it as there is room for.
func (w *window) readAll() bool {
	if !w.q.moreUnsure() {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.progress.Full()
}

// open is how many samples of the window have no outcome.
func (w *window) open() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.progress.Open()
}

// times is o, which counts one sample, for n samples.
func times(o wal.Outcome, n uint64) wal.Outcome {
	o.Delivered *= n
	o.Filtered *= n
	for r := range o.Dropped {
		o.Dropped[r] *= n
	}
	return o
}

// one is the outcome of one sample dropped for a reason.
func one(r wal.Reason) (o wal.Outcome) {
	o.Dropped[r] = 1
	return o
}
