package remotewrite

import (
	"context"
	"math"
	"slices"
	"sort"
	"sync"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/hashset"
)

// shard sends the samples of some of the series, in order, one request at a time.
//
// Invariant: a batch is finished, with every sample of it settled, before the next one begins. So the stored samples of
// a shard are always a prefix of those that it was given.
type shard struct {
	w    *window
	q    *lane
	wake chan struct{} // gets a token when the fields under mu change

	mu     sync.Mutex
	queue  fifo
	since  time.Time // when a sample last came into the empty queue
	flush  bool      // send without waiting for a full batch
	gather bool      // wait for more than a full batch: see newShard
	unsure uint64    // samples of entries up to this one are in doubt

	// Used only by the shard's goroutine.
	sending context.Context // context of requests: it outlives the window's a little
	batch   []point
	body    []byte // of the request in flight

	timer *time.Timer
	seen  hashset.Set
	// wouldGroup: the batch was cut short where a series came again.
	wouldGroup bool
	aside      []point // samples of the batch that are sent after the others; see deliverBatch
	newest     *known  // of the last series in noteTaken, shared with those that follow
	good       point   // the last accepted sample: the newest of its series; none before the first
	late       point   // the last sample that the receiver's database refused alone as late; none before the first
}

// newShard creates a shard of a new window. If the target was down, the shard finds out at once whether it still is. If
// the target is held, the window is read first: the sample that tests the target is then picked from all series, because
// those of the first commits may all be bad.
func newShard(w *window) *shard {
	v := w.q.gate.View()
	held := v.State == gate.Held
	return &shard{
		w: w, q: w.q, wake: make(chan struct{}, 1),
		flush: !v.Since.IsZero() && !held, gather: held,
	}
}

// push appends points to the queue. The reader calls it.
func (s *shard) push(ps []point) {
	if len(ps) == 0 {
		return
	}
	s.mu.Lock()
	if s.queue.len() == 0 {
		s.since = time.Now()
	}
	s.queue.push(ps)
	s.mu.Unlock()
	s.notify()
}

// unsureUpTo records that samples of entries up to seq are in doubt. The reader calls it before it pushes them.
func (s *shard) unsureUpTo(seq uint64) {
	s.mu.Lock()
	s.unsure = seq
	s.mu.Unlock()
}

// unsureTo returns the last entry whose samples are in doubt.
func (s *shard) unsureTo() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.q.moreUnsure() {
		return math.MaxUint64
	}
	return s.unsure
}

func (s *shard) flushNow() {
	s.mu.Lock()
	s.flush, s.gather = true, false
	s.mu.Unlock()
	s.notify()
}

func (s *shard) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run sends until ctx ends. A request in flight may then continue until sending ends.
func (s *shard) run(ctx, sending context.Context) error {
	s.sending = sending
	s.timer = time.NewTimer(0)
	defer s.timer.Stop()
	for {
		unsure, err := s.next(ctx)
		if err != nil {
			return nil // ctx has ended; its cause says why
		}
		if !unsure {
			s.askForGrouping()
		}
		if err = s.deliverBatch(ctx, unsure); unsure {
			s.batch = nil // it is much larger than other batches
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
	}
}

// next waits until a batch is full or due and puts it into s.batch. Samples in doubt and fresh ones never share a
// batch; unsure says that these are in doubt.
func (s *shard) next(ctx context.Context) (unsure bool, err error) {
	deadline := time.Duration(s.q.cfg.Queue.BatchSendDeadline)
	for {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		all := s.w.readAll()
		s.mu.Lock()
		n := s.queue.len()
		limit := s.q.batchLimit()
		wait := time.Duration(-1)
		if n > 0 {
			wait = max(deadline-time.Since(s.since), 0)
			if n >= limit && !s.gather || s.flush || s.w.draining.Load() {
				wait = 0
			}
			if !all && s.queue.points()[0].seq <= s.unsure {
				wait = -1 // a sample behind it may show whether it is stored
			}
		}
		if wait == 0 {
			s.gather = false
			unsure = s.take(limit)
			if s.queue.len() == 0 {
				s.flush = false
			}
			s.mu.Unlock()
			return unsure, nil
		}
		s.mu.Unlock()
		if wait > 0 {
			s.timer.Reset(wait)
		}
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-s.timer.C:
		}
	}
}

// take moves up to limit points into s.batch. The caller holds s.mu, and there is a point.
func (s *shard) take(limit int) (unsure bool) {
	ps := s.queue.points()
	if unsure = ps[0].seq <= s.unsure; unsure {
		limit = len(ps) // they are divided into requests later
	}
	n := min(limit, len(ps))
	if unsure {
		// Entries are in order, so the samples in doubt are a prefix of the queue.
		n = sort.Search(n, func(i int) bool { return ps[i].seq > s.unsure })
	}
	if !unsure && !s.q.mayGroup() {
		u := uniquePrefix(ps[:n], n, &s.seen)
		s.wouldGroup = u < n
		n = u
	}
	n = withExemplars(ps, n)
	if unsure && n == len(ps) {
		s.batch = s.queue.takeAll()
		return true
	}
	clear(s.batch)
	s.batch = s.queue.take(s.batch[:0], n)
	return unsure
}

// askForGrouping sends empty writes, until one is answered, to find out whether several samples of a series may share a
// request (see [Queue.mayGroup]). It does so only when that would pay and the target has answered data.
func (s *shard) askForGrouping() {
	g := s.q.gate
	state := g.View().State
	answers := state == gate.Open || state == gate.Unproven && s.q.clock.Known()
	if !s.wouldGroup || !answers || s.q.asked.Swap(true) {
		return
	}
	p, ok := g.Try()
	if !ok {
		s.q.asked.Store(false)
		return
	}
	a := s.q.sendEmpty(s.sending, s.q.proto.ForEmpty(false))
	if a.Accepted() {
		g.SawEmptyPass()
	} else if a.Verdict == client.Retry {
		s.q.asked.Store(false) // the question is still open
	}
	g.Release(p)
}

// putBack returns points to the front of the queue.
func (s *shard) putBack(points []point) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.unread(inLogOrder(slices.Concat(points, s.aside)))
	s.aside, s.flush = nil, true
}

// topUp appends points of the queue to a batch that cannot be delivered: if the batch is at fault, the others must show
// that the target is healthy.
func (s *shard) topUp(batch []point) []point {
	if len(s.aside) > 0 {
		return batch // a sample must not overtake earlier ones of its series
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(max(s.q.batchLimit()-len(batch), 0), s.queue.len())
	return s.queue.take(slices.Clip(batch), withExemplars(s.queue.points(), n))
}
