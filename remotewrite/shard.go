package remotewrite

import (
	"context"
	"math"
	"sync"
	"time"

	"hwsagent/remotewrite/gate"
)

// shard sends the samples of some of the series, in order, one request at a time.
//
// Invariant: a batch is finished, with every sample of it settled, before the next one begins. So the stored samples of
// a shard are always a prefix of those that it was given.
type shard struct {
	w    *window
	lane *lane
	wake chan struct{} // gets a token when the fields under mu change

	mu     sync.Mutex
	queue  fifo
	since  time.Time // when a sample last came into the empty queue
	flush  bool      // send without waiting for a full batch
	gather bool      // wait for more than a full batch: see newShard

	// Used only by the shard's goroutine.
	sending context.Context // context of requests: it outlives the window's a little
	batch   []point
	body    []byte // of the request in flight

	timer *time.Timer
	seen  map[uint64]struct{}
	good  point // the last accepted sample: the newest of its series; none before the first
	late  point // the last sample that the receiver's database refused alone as late; none before the first
}

// newShard creates a shard of a new window. If the target was down, the shard finds out at once whether it still is. If
// the target is held, the window is read first: the sample that tests the target is then picked from all series, because
// those of the first commits may all be bad.
func newShard(w *window) *shard {
	v := w.lane.gate.View()
	held := v.State == gate.Held
	return &shard{
		w: w, lane: w.lane, wake: make(chan struct{}, 1), seen: make(map[uint64]struct{}),
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

func (s *shard) flushNow() {
	s.mu.Lock()
	s.flush, s.gather = s.flush || s.queue.len() > 0, false
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
		if s.next(ctx) != nil {
			return nil // ctx has ended; its cause says why
		}
		err := s.deliverBatch(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
	}
}

// next waits until a batch is full or due and puts it into s.batch. The error is ctx's.
func (s *shard) next(ctx context.Context) error {
	deadline := time.Duration(s.lane.cfg.Queue.BatchSendDeadline)
	for {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.mu.Lock()
		n := s.queue.len()
		limit := s.lane.batchLimit()
		if s.lane.asksNewest() {
			limit = math.MaxInt // the batch is not sent as it is
		}
		wait := time.Duration(-1)
		if n > 0 {
			wait = max(deadline-time.Since(s.since), 0)
			if n >= limit && !s.gather || s.flush || s.w.draining.Load() {
				wait = 0
			}
		}
		if wait == 0 {
			s.gather = false
			s.take(limit)
			if s.queue.len() == 0 {
				s.flush = false
			}
			s.mu.Unlock()
			return nil
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

// take moves up to limit points into s.batch. The caller holds s.mu.
func (s *shard) take(limit int) {
	ps := s.queue.points()
	n := min(limit, len(ps))
	if s.w.several.Load() && !s.lane.groups.Load() {
		n = uniquePrefix(ps[:n], s.seen)
	}
	clear(s.batch)
	s.batch = s.queue.take(s.batch[:0], withExemplars(ps, n))
}

// putBack returns points to the front of the queue.
func (s *shard) putBack(points []point) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.unread(points)
	s.flush = true
}
