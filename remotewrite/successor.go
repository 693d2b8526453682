package remotewrite

import "slices"

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
