package remotewrite

import (
	"context"

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
	for _, lane := range splitLanes(points, lanes) {
		for redo := lane; len(redo) > 0; {
			r := resender{s: s}
			if err := r.run(ctx, redo); err != nil {
				return err
			}
			clean := true
			if len(r.stored) > 0 {
				var err error
				if clean, err = s.confirm(ctx, false); err != nil {
					return err
				}
			}
			if redo = r.stored; clean {
				s.w.settleAll(redo, one(wal.Resent))
				redo = nil
			}
		}
	}
	return nil
}

// splitLanes separates points by the shard that had them before.
func splitLanes(points []point, lanes int) [][]point {
	if lanes <= 1 {
		return [][]point{points}
	}
	split := make([][]point, lanes)
	for _, p := range points {
		i := p.series.hash % uint64(lanes)
		split[i] = append(split[i], p)
	}
	return split
}

// resender sends one lane.
type resender struct {
	s      *shard
	stored []point // by all evidence so far
	// expect: the chunk before was stored, so this one is likely to be.
	expect bool
}

func (r *resender) run(ctx context.Context, points []point) error {
	for len(points) > 0 {
		n := uniquePrefix(points, min(resendChunk, r.s.q.batchLimit()), r.s.seen)
		again, err := r.chunk(ctx, append([]point(nil), points[:n]...))
		switch {
		case err != nil:
			return err
		case again:
			continue // smaller
		}
		points = points[n:]
	}
	return nil
}

// chunk brings a chunk to its outcomes, or asks for a smaller one.
func (r *resender) chunk(ctx context.Context, chunk []point) (smaller bool, err error) {
	if !r.expect {
		l := load{points: chunk, unsure: true}
		f, a, err := r.s.try(ctx, &l, patient)
		switch {
		case err != nil || f == settled:
			return false, err
		case f == tooLarge && len(l.points) > 1:
			r.s.q.shrinkBatch(len(l.points))
			return true, nil
		case f == tooLarge:
			r.s.bury(l.points, a, wal.Rejected)
			return false, nil
		case f == stuck:
			return false, r.s.deliver(ctx, &l)
		}
		chunk = l.points
	}
	chunk = r.s.withoutExemplars(chunk)
	if len(chunk) == 0 {
		return false, nil
	}
	return false, r.search(ctx, chunk)
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
		l := load{points: []point{chunk[i]}, unsure: true}
		f, a, err := r.s.try(ctx, &l, parts)
		if err != nil {
			return err
		}
		answers[i] = a
		b.tell(f == settled)
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
	return r.s.deliver(ctx, &load{points: fresh})
}

// boundary searches, by asking for single samples, how long the stored prefix of a chunk
// is. It is pure. Each series is in the chunk once, so asking for any sample is safe.
//
// Invariant: before lo all are stored, but for those that were taken or bad; from hi on
// none is.
type boundary struct {
	lo, hi int
	taken  []bool // taken when asked for: settled
	bad    []bool // refused, and not because they are stored

	asked   int
	witness int // refused, and awaits a second witness; -1 for none
	started bool
}

// next returns the sample to ask for. entry tells which commit a sample is of.
func (b *boundary) next(entry func(int) uint64) (int, bool) {
	if !b.started {
		b.started, b.witness = true, -1
		b.asked = b.hi - 1
		return b.asked, true
	}
	if b.witness >= 0 {
		// Another witness below it: of another commit, if there is one.
		for i := b.witness - 1; i >= b.lo; i-- {
			if entry(i) != entry(b.witness) && !b.taken[i] && !b.bad[i] {
				b.asked = i
				return i, true
			}
		}
		for i := b.witness - 1; i >= b.lo; i-- {
			if !b.taken[i] && !b.bad[i] {
				b.asked = i
				return i, true
			}
		}
		b.lo, b.witness = b.witness+1, -1 // no other: one must do
	}
	if b.lo >= b.hi {
		return 0, false
	}
	b.asked = b.lo + (b.hi-b.lo)/2
	return b.asked, true
}

// tell says whether the receiver took the sample.
func (b *boundary) tell(taken bool) {
	switch {
	case taken:
		b.taken[b.asked] = true
		if b.witness >= 0 {
			b.bad[b.witness] = true // later than one that was not stored
			b.witness = -1
		}
		b.hi = b.asked
	case b.witness >= 0:
		b.lo, b.witness = b.witness+1, -1
	default:
		b.witness = b.asked
	}
}
