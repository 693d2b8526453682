package remotewrite

import (
	"cmp"
	"context"
	"slices"

	"hwsagent/wal"
)

// Samples that may be stored already are sent in chunks of one sample per series, in
// the log's order, and never together with fresh ones. A receiver takes a series'
// newest sample again; an older one it refuses, and Prometheus without an out-of-order
// window refuses the whole request for it. So a refused chunk says that something of it
// was stored and has successors there. What a shard had got stored is a prefix of what it
// was given (see [shard]), so the newest sample of the chunk tells: if it is refused
// too, the whole chunk was stored; else the boundary lies inside, and is searched for.
//
// A sample may be refused because it is bad, too. So "stored" is believed only of two
// samples, as different as can be; and nothing is settled as stored before it is
// certain that the way to the receiver was good.

// resendChunk is the most samples in a chunk.
const resendChunk = 500

// resend brings every sample to its outcome. The prefix property holds within each of
// so many lanes, by hash. The error is ctx's.
func (s *shard) resend(ctx context.Context, points []point, lanes int) error {
	s.resending = true
	defer func() { s.resending, s.behind = false, nil }()
	for todo := points; len(todo) > 0; {
		s.behind = byLane(todo, lanes)
		r := resender{s: s, lanes: uint64(lanes)}
		for len(s.behind) > 0 {
			if err := r.next(ctx); err != nil {
				return err
			}
		}
		if len(r.stored) == 0 {
			return nil
		}
		clean, err := s.confirm(ctx, false)
		if err != nil {
			return err
		}
		if clean {
			s.w.settleAll(r.stored, one(wal.Resent))
			return nil
		}
		todo = inLogOrder(r.stored)
	}
	return nil
}

// byLane returns the points lane by lane.
func byLane(points []point, lanes int) []point {
	points = slices.Clone(points)
	if lanes > 1 {
		slices.SortStableFunc(points, func(a, b point) int {
			return cmp.Compare(a.series.hash%uint64(lanes), b.series.hash%uint64(lanes))
		})
	}
	return points
}

// resender sends what is in shard.behind.
type resender struct {
	s      *shard
	lanes  uint64
	lane   uint64  // of the chunk before
	stored []point // by all evidence so far
	// expect: the chunk before was stored, so this one is likely to be.
	expect bool
}

// next takes a chunk from the front and brings it to its outcomes.
func (r *resender) next(ctx context.Context) error {
	ps := r.s.behind
	lane := ps[0].series.hash % r.lanes
	if lane != r.lane {
		r.lane, r.expect = lane, false
	}
	n := uniquePrefix(ps, min(resendChunk, r.s.q.batchLimit()), r.s.seen)
	if i := slices.IndexFunc(ps[:n], func(p point) bool { return p.series.hash%r.lanes != lane }); i >= 0 {
		n = i
	}
	r.s.behind = ps[n:]
	return r.chunk(ctx, slices.Clone(ps[:n]))
}

// chunk brings a chunk to its outcomes, or puts it back to be cut smaller.
func (r *resender) chunk(ctx context.Context, chunk []point) error {
	if !r.expect {
		l := parcel{points: chunk, unsure: true}
		f, a, err := r.s.try(ctx, &l, patient)
		switch {
		case err != nil || f == settled:
			return err
		case f == tooLarge && len(l.points) > 1:
			r.s.q.shrinkBatch(len(l.points))
			r.s.putBack(l.points, true)
			return nil
		case f == tooLarge:
			r.s.bury(l.points, a, wal.Rejected)
			return nil
		case f == stuck:
			return r.s.deliver(ctx, &l)
		}
		chunk = l.points
	}
	chunk = r.s.withoutExemplars(chunk)
	if len(chunk) == 0 {
		return nil
	}
	return r.search(ctx, chunk)
}

// search finds out how much of a chunk was stored.
func (r *resender) search(ctx context.Context, chunk []point) error {
	n := len(chunk)
	b := boundary{lo: 0, hi: n, taken: make([]bool, n), bad: make([]bool, n)}
	answers := make([]Answer, n)
	for {
		i, ok := b.next(func(i int) uint64 { return chunk[i].seq })
		if !ok {
			break
		}
		l := parcel{points: []point{chunk[i]}, unsure: true}
		f, a, err := r.s.try(ctx, &l, parts)
		if err != nil {
			return err
		}
		answers[i] = a
		b.tell(f == settled, r.s.mayHaveSuccessor(chunk[i]))
	}
	r.expect = b.lo == n
	var fresh, bad []point
	var why []Answer
	for i, p := range chunk {
		switch {
		case b.taken[i]:
		case b.bad[i]:
			bad, why = append(bad, p), append(why, answers[i])
		case i < b.lo:
			r.stored = append(r.stored, p)
		default:
			fresh = append(fresh, p)
		}
	}
	if len(bad) > 0 {
		clean, err := r.s.confirm(ctx, false)
		if err != nil {
			return err
		}
		if clean {
			r.s.buryEach(bad, why)
		} else {
			fresh = inLogOrder(append(fresh, bad...))
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	return r.s.deliver(ctx, &parcel{points: fresh})
}

// mayHaveSuccessor reports whether a later sample of the point's series may be stored. If
// not, the point was not refused for being late: then it is bad.
func (s *shard) mayHaveSuccessor(p point) bool {
	if s.q.moreUnsure() {
		return true // and not read yet
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	later := func(q point) bool { return q.series.hash == p.series.hash && q.seq <= s.unsure }
	return slices.ContainsFunc(s.behind, func(q point) bool { return q.series.hash == p.series.hash }) ||
		slices.ContainsFunc(s.queue.points(), later)
}

// boundary searches, by asking for single samples, how long the stored prefix of a chunk
// is. It is pure. Each series is in the chunk once, so asking for any sample is safe.
//
// Invariant: before lo all are stored, but for those that were taken or are bad; from hi
// on none is.
type boundary struct {
	lo, hi int
	taken  []bool // taken when asked for: settled
	bad    []bool // refused, and not because they are stored

	asked     int
	searching bool // the newest was asked for, and it was not stored
	witness   int  // 1 + a sample that was refused and awaits a second witness; 0 for none
}

// next returns the sample to ask for. entry tells which commit a sample is of.
func (b *boundary) next(entry func(int) uint64) (int, bool) {
	if b.witness > 0 {
		// Another witness below it: of another commit, if there is one.
		w := b.witness - 1
		for _, same := range []bool{false, true} {
			for i := w - 1; i >= b.lo; i-- {
				if b.open(i) && (entry(i) == entry(w)) == same {
					b.asked = i
					return i, true
				}
			}
		}
		b.stored(w) // no other: one must do
	}
	from := b.hi - 1
	if b.searching {
		from = b.lo + (b.hi-b.lo)/2
	}
	for i := from; i >= b.lo; i-- {
		if b.open(i) {
			b.asked = i
			return i, true
		}
	}
	for i := from + 1; i < b.hi; i++ {
		if b.open(i) {
			b.asked = i
			return i, true
		}
	}
	return 0, false
}

func (b *boundary) open(i int) bool { return !b.taken[i] && !b.bad[i] }

func (b *boundary) stored(upTo int) { b.lo, b.witness = upTo+1, 0 }

// tell says whether the receiver took the sample, and if not, whether it may have been
// refused for being late.
func (b *boundary) tell(taken, late bool) {
	switch {
	case taken:
		b.taken[b.asked] = true
		if b.witness > 0 {
			b.bad[b.witness-1] = true // later than one that was not stored
			b.witness = 0
		}
		b.searching = true
		b.hi = b.asked
	case !late:
		b.bad[b.asked] = true
	case b.witness > 0:
		b.stored(b.witness - 1)
	default:
		b.witness = b.asked + 1
	}
}
