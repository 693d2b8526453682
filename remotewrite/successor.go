package remotewrite

import (
	"context"
	"slices"

	"hwsagent/remotewrite/client"
	"hwsagent/wal"
)

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
		if j, ok := at[later[i].series.hash]; ok && later[i].seq >= chunk[j].seq && later[i].t > chunk[j].t {
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

// settleTaken settles as stored those samples of which a later one of the series was taken by this
// process, and returns the others. A shard sends no sample before those that come before it in its
// series have their outcome, so these had theirs in an earlier window; what was given up then is
// known, and not among them.
func (s *shard) settleTaken(points []point) []point {
	var taken, others []point
	for _, p := range points {
		if p.kind != exemplarPoint && p.t <= p.series.newest && p.series.newestIn > s.w.commitOf(p.seq) {
			taken = append(taken, p)
		} else {
			others = append(others, p)
		}
	}
	if len(taken) == 0 {
		return points
	}
	s.w.settleAll(taken, one(wal.Resent))
	return others
}

// successorsAsked is how many successors of a sample are asked for to find out whether it is stored.
const successorsAsked = 3

// storedAsLate reports whether a sample that is sent again, and was refused alone, is stored:
// the receiver says that it comes too late, and takes a successor that may be stored as well,
// so it has nothing newer than that of the series. A successor that is taken has no outcome
// yet: its turn comes. One that shall not be sent is not asked for. requests is how many it took.
// The error is ctx's, or errDoubted.
func (s *shard) storedAsLate(ctx context.Context, p point, why client.Answer) (stored bool, requests int, err error) {
	if !s.resending || !saysLate(why) || saysTooOld(why) {
		return false, 0, nil
	}
	if p.t <= p.series.newest && p.series.newestIn < s.w.commitOf(p.seq) {
		return false, 0, nil // it was late when it was first sent
	}
	for _, next := range s.successors(p, successorsAsked) {
		l := parcel{points: []point{next}, again: true, unsure: true}
		if lim, _ := s.q.limits(); next.t < lim.oldest || next.t > lim.newest || !carries(&s.q.cfg, s.q.choose(&l).version, &next) {
			continue
		}
		requests++
		f, a, err := s.try(ctx, &l, parts)
		if err != nil || f == settled {
			return err == nil, requests, err
		}
		if saysLate(a) {
			continue
		}
		c, err := s.contrast(ctx, &l, a)
		requests += c.requests
		switch {
		case err != nil:
			return false, requests, err
		case c.blame == blameTarget:
			return false, requests, errDoubted
		case c.blame == blameNone:
			return true, requests, nil
		}
		break // it is bad
	}
	return false, requests, nil
}

// successors returns the first samples after the point in its series that may be stored, at
// most so many.
func (s *shard) successors(p point, most int) (next []point) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, points := range [][]point{s.behind, s.queue.points()} {
		for _, q := range points {
			if len(next) == most || q.seq > s.unsure {
				break
			}
			if q.series.hash == p.series.hash && q.seq >= p.seq && q.t > p.t && q.kind != exemplarPoint {
				next = append(next, q)
			}
		}
	}
	return next
}
