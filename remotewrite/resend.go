package remotewrite

import (
	"cmp"
	"context"
	"slices"
	"sort"

	"hwsagent/wal"
)

// Samples that may be stored already are sent in chunks of one sample per series, in
// the log's order, and never together with fresh ones. A receiver takes a series'
// newest sample again; an older one it refuses as late, and Prometheus without an
// out-of-order window refuses the whole request for it.
//
// What a shard had got stored is a prefix of what it was given (see [shard]). A sample is
// late if its successor, the next sample of its series, is stored, and the successor
// lies behind the chunk. So one late sample shows that the whole chunk was stored; and
// the sample whose successor comes first is late if any is. It is the witness: asked for
// alone, it tells whether a refused chunk was stored or has something bad in it.
//
// A witness may be bad itself. So it takes two to believe them, of different commits if
// possible; and nothing is settled as stored before it is certain that the way to the
// receiver was good.

// resendChunk is the most samples in a chunk.
const resendChunk = 500

// resend brings every sample to its outcome. The prefix property holds within each of
// so many lanes, by hash. The error is ctx's.
func (s *shard) resend(ctx context.Context, points []point, lanes int) error {
	s.resending, s.behind = true, byLane(points, lanes)
	defer func() { s.resending, s.behind, s.early = false, nil, nil }()
	r := resender{s: s, lanes: uint64(lanes), believed: map[pointKey]bool{}}
	for len(s.behind) > 0 || len(r.stored) > 0 {
		var err error
		if troubles := s.q.gate.view().troubles; len(s.behind) == 0 || len(r.stored) > 0 && troubles != r.troubles {
			err = r.settle(ctx)
		} else {
			r.troubles = troubles
			err = r.next(ctx)
		}
		if err != nil {
			return err
		}
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

	// believed: samples that were found stored before, when the way to the receiver may
	// not have been good. If they are refused once more, they are.
	believed map[pointKey]bool
	troubles uint64 // of the gate, when the last chunk began

	// expect: the chunk before was stored, so this one is likely to be.
	expect bool
}

// pointKey names a sample of a batch.
type pointKey struct{ hash, seq uint64 }

func (p point) key() pointKey { return pointKey{p.series.hash, p.seq} }

// settle gives the stored samples their outcome, if the way to the receiver was good all
// the time; otherwise they are sent again, before anything that comes after them.
func (r *resender) settle(ctx context.Context) error {
	clean, err := r.s.confirm(ctx, false)
	if err != nil {
		return err
	}
	if clean && r.s.q.gate.view().troubles == r.troubles {
		r.s.w.settleAll(r.stored, one(wal.Resent))
	} else {
		for _, p := range r.stored {
			r.believed[p.key()] = true
		}
		r.s.behind = append(byLane(inLogOrder(r.stored), int(r.lanes)), r.s.behind...)
	}
	r.stored, r.expect, r.troubles = nil, false, r.s.q.gate.view().troubles
	return nil
}

// next takes a chunk from the front and brings it to its outcomes.
func (r *resender) next(ctx context.Context) error {
	ps := r.s.behind
	lane := ps[0].series.hash % r.lanes
	if lane != r.lane {
		r.lane, r.expect = lane, false
	}
	n := uniquePrefix(ps, min(resendChunk, r.s.q.batchLimit()), &r.s.seen)
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
			r.s.q.forgiveBatch()
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

// search finds out whether a chunk was stored, and brings it to its outcomes.
func (r *resender) search(ctx context.Context, chunk []point) error {
	var asked, refusals []point
	var why []Answer
	ask := func(i int) (taken bool, err error) {
		l := parcel{points: []point{chunk[i]}, unsure: true}
		f, a, err := r.s.try(ctx, &l, parts)
		asked = append(asked, chunk[i])
		if err == nil && f != settled {
			refusals, why = append(refusals, chunk[i]), append(why, a)
		}
		return f == settled, err
	}
	stored := false
	for n, i := range r.witnesses(chunk) {
		taken, err := ask(i)
		if err != nil {
			return err
		}
		if stored = !taken; taken && n != 1 {
			break // none is late
		}
	}
	r.expect = stored
	rest := slices.DeleteFunc(chunk, func(p point) bool { return slices.ContainsFunc(asked, p.same) })
	if stored {
		r.stored = append(append(r.stored, refusals...), rest...)
		return nil
	}
	for i := 0; i < len(refusals); {
		if !r.believed[refusals[i].key()] {
			i++
			continue
		}
		r.stored = append(r.stored, refusals[i])
		refusals, why = slices.Delete(refusals, i, i+1), slices.Delete(why, i, i+1)
	}
	if len(refusals) > 0 {
		clean, err := r.s.confirm(ctx, false)
		if err != nil {
			return err
		}
		if clean {
			r.s.buryEach(refusals, why)
		} else {
			rest = append(refusals, rest...)
		}
	}
	if len(rest) == 0 {
		return nil
	}
	return r.s.deliver(ctx, &parcel{points: inLogOrder(rest)})
}

// witnesses picks the samples of a chunk to ask for, in this order: the one whose
// successor comes first; another one like it, of another commit if possible; and if that
// disagrees, the one whose successor comes next.
func (r *resender) witnesses(chunk []point) []int {
	s := r.s
	s.mu.Lock()
	queued := s.queue.points()
	n := sort.Search(len(queued), func(i int) bool { return queued[i].seq > s.unsure })
	later := slices.Concat(s.early, s.behind, queued[:n])
	s.mu.Unlock()
	order := bySuccessor(chunk, later)
	if len(order) == 0 {
		order = nil
		for i := range chunk {
			// The successors are not read yet, or were delivered meanwhile.
			if s.q.moreUnsure() || r.believed[chunk[i].key()] {
				order = append(order, i)
			}
		}
	}
	if len(order) < 2 {
		return order
	}
	other := slices.IndexFunc(order, func(i int) bool { return chunk[i].seq != chunk[order[0]].seq })
	switch {
	case other < 2:
		return order[:2]
	default:
		return []int{order[0], order[other], order[1]}
	}
}

// bySuccessor returns the samples of a chunk, as indices, that have a successor in later,
// the one with the earliest successor first.
func bySuccessor(chunk, later []point) []int {
	at := make(map[uint64]int, len(chunk))
	for i := range chunk {
		at[chunk[i].series.hash] = i
	}
	var order []int
	for i := range later {
		if later[i].kind == exemplarPoint {
			continue
		}
		if j, ok := at[later[i].series.hash]; ok && later[i].seq >= chunk[j].seq {
			order = append(order, j)
			delete(at, later[i].series.hash)
		}
	}
	return order
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
	return slices.ContainsFunc(slices.Concat(s.early, s.behind), func(q point) bool {
		return q.series.hash == p.series.hash && q.seq >= p.seq && !q.same(p)
	}) || slices.ContainsFunc(s.queue.points(), later)
}
