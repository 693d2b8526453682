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
// A witness may be bad itself. So a second one is asked, as far from the first as can be;
// if they disagree, how far the late ones reach is searched for (see lateSearch). And
// nothing is settled as stored before it is certain that the way to the receiver was
// good.

// resendChunk is the most samples in a chunk.
const resendChunk = 500

// resend brings every sample to its outcome. The prefix property holds within each of
// so many lanes, by hash. It owns the points, of which there may be many: there is no second
// copy. The error is ctx's.
func (s *shard) resend(ctx context.Context, points []point, n int) error {
	r := resender{s: s, lanes: newLanes(points, n), believed: map[pointKey]bool{}}
	s.resending, s.behind = true, r.lanes.sort(points)
	defer func() { s.resending, s.behind = false, nil }()
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

// lanes divide what is sent again: by hash, because the prefix property holds within each
// lane, and each of these by kind, because receivers differ about them. Prometheus 2 with an
// out-of-order window takes floats late, but no histograms: a late float that is taken says
// nothing about the histograms beside it. A series is all of one kind, for its order: it
// is histograms if any of its samples is one.
type lanes struct {
	n          uint64
	histograms map[uint64]bool // by hash
}

func newLanes(points []point, n int) lanes {
	l := lanes{n: uint64(n), histograms: make(map[uint64]bool)}
	for i := range points {
		if k := points[i].kind; k == intHistogram || k == floatHistogram {
			l.histograms[points[i].series.hash] = true
		}
	}
	return l
}

// of is the lane of a point, from 0.
func (l lanes) of(p point) uint64 {
	lane := 2 * (p.series.hash % l.n)
	if l.histograms[p.series.hash] {
		lane++
	}
	return lane
}

// sort sorts the points, which are in the log's order, lane by lane.
func (l lanes) sort(points []point) []point {
	if l.n > 1 || len(l.histograms) > 0 {
		slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(l.of(a), l.of(b)) })
	}
	return points
}

// resender sends what is in shard.behind.
type resender struct {
	s      *shard
	lanes  lanes
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
		r.s.w.noteTaken(r.stored)
		r.s.w.settleAll(r.stored, one(wal.Resent))
	} else {
		for _, p := range r.stored {
			r.believed[p.key()] = true
		}
		r.s.behind = append(r.lanes.sort(inLogOrder(r.stored)), r.s.behind...)
	}
	r.stored, r.expect, r.troubles = nil, false, r.s.q.gate.view().troubles
	return nil
}

// next takes a chunk from the front and brings it to its outcomes.
func (r *resender) next(ctx context.Context) error {
	ps := r.s.behind
	lane := r.lanes.of(ps[0])
	if lane != r.lane {
		r.lane, r.expect = lane, false
	}
	n := uniquePrefix(ps, min(resendChunk, r.s.q.batchLimit()), &r.s.seen)
	if i := slices.IndexFunc(ps[:n], func(p point) bool { return r.lanes.of(p) != lane }); i >= 0 {
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
			done, err := r.s.tooLargeAlone(ctx, l.points, a)
			if !done && err == nil {
				r.s.putBack(l.points, true)
			}
			return err
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

// search finds out what of a refused chunk was stored, and brings it to its outcomes.
func (r *resender) search(ctx context.Context, chunk []point) error {
	chunk, err := r.searchBelieved(ctx, chunk)
	if err != nil || len(chunk) == 0 {
		return err
	}
	rest, chunk := r.s.w.setBack(chunk)
	order := r.bySuccessor(chunk)
	find := lateSearch{hi: len(order)}
	taken := make([]bool, len(chunk))
	why := make([]Answer, len(chunk))
	for {
		n, ok := find.next()
		if !ok {
			break
		}
		i := order[n]
		if taken[i], why[i], err = r.ask(ctx, chunk[i]); err != nil {
			return err
		}
		find.tell(taken[i])
	}
	late := make([]bool, len(chunk))
	for _, i := range order[:find.lo] {
		late[i] = true
	}
	all := find.lo == len(order) && len(order) > 1
	tooOld, isOld := r.tooOld(why)
	var old []point
	for i, p := range chunk {
		switch {
		case taken[i]:
		case late[i] && find.lo == 1 && len(order) > 1 && !r.expect:
			// Nothing else was stored that has a successor: this sample is bad.
			clean, err := r.s.confirm(ctx, false)
			if err != nil {
				return err
			}
			if clean {
				r.s.buryEach([]point{p}, []Answer{why[i]})
			} else {
				rest = append(rest, p)
			}
		case isOld && (late[i] || all):
			old = append(old, p)
		case late[i], all:
			r.stored = append(r.stored, p)
		default:
			rest = append(rest, p) // stored and the newest, or fresh: it is taken
		}
	}
	if len(old) > 0 {
		clean, err := r.s.confirm(ctx, false)
		if err != nil {
			return err
		}
		if clean {
			r.s.bury(old, tooOld, wal.Unconfirmed)
		} else {
			rest = append(rest, old...)
		}
	}
	r.expect = find.lo > 0 && find.lo == len(order)
	if len(rest) == 0 {
		return nil
	}
	return r.s.deliver(ctx, &parcel{points: inLogOrder(rest)})
}

// tooOld returns the refusal of a sample for its age, if there is one and the target takes late
// data: then what is refused is older than its window, stored or not.
func (r *resender) tooOld(why []Answer) (Answer, bool) {
	i := slices.IndexFunc(why, saysTooOld)
	if i < 0 || r.s.q.cfg.Target.CatchUp != LiveFirst {
		return Answer{}, false
	}
	return why[i], true
}

// ask sends one sample.
func (r *resender) ask(ctx context.Context, p point) (taken bool, a Answer, err error) {
	f, a, err := r.s.try(ctx, &parcel{points: []point{p}, unsure: true}, parts)
	return f == settled, a, err
}

// searchBelieved settles those samples of a chunk that were found stored before, if one
// of them is refused again, and returns the others.
func (r *resender) searchBelieved(ctx context.Context, chunk []point) ([]point, error) {
	var believed, others []point
	for _, p := range chunk {
		if r.believed[p.key()] {
			believed = append(believed, p)
		} else {
			others = append(others, p)
		}
	}
	if len(believed) == 0 {
		return chunk, nil
	}
	taken, _, err := r.ask(ctx, believed[0])
	switch {
	case err != nil:
		return nil, err
	case !taken:
		r.stored, r.expect = append(r.stored, believed...), true
		return others, nil
	}
	return inLogOrder(append(believed[1:], others...)), nil
}

// bySuccessor returns the samples of a chunk that may be late, as indices.
func (r *resender) bySuccessor(chunk []point) []int {
	s := r.s
	more := s.q.moreUnsure() // before it is looked what there is
	s.mu.Lock()
	queued := s.queue.points()
	n := sort.Search(len(queued), func(i int) bool { return queued[i].seq > s.unsure })
	later := slices.Concat(s.early, s.behind, queued[:n])
	s.mu.Unlock()
	if len(s.early) > 0 {
		later = inLogOrder(later) // each in its place; that mixes the lanes, of which others have nothing of this one
	}
	order := bySuccessor(chunk, later)
	if more { // there was no room to read them: the successors of the others come after all of these
		known := len(order)
		for i := range chunk {
			if !slices.Contains(order[:known], i) {
				order = append(order, i)
			}
		}
	}
	return order
}

// lateSearch finds out by single samples how many of a chunk are late, in the order of
// their successors: these are a prefix, since what was stored is. It is pure. The first
// one tells whether any is late; that all are is believed if the last one and one in the
// middle are as well: three that lie far apart are hardly bad together.
//
// Invariant: those before lo are late, or bad; those from hi on are not late, but for the
// last one, which may be bad.
type lateSearch struct {
	lo, hi int
	asked  int
	step   lateStep
}

// lateStep is what a lateSearch asked for last.
type lateStep uint8

const (
	askedNothing lateStep = iota
	askedFirst
	askedLast
	askedMiddle // after the last one was refused
	halving
)

// next returns the place of the sample to ask for, or false when lo is the result.
func (l *lateSearch) next() (int, bool) {
	if l.lo >= l.hi {
		return 0, false
	}
	switch l.step {
	case askedNothing:
		l.step, l.asked = askedFirst, 0
	case askedFirst:
		l.step, l.asked = askedLast, l.hi-1
	case askedMiddle:
		l.asked = l.lo + (l.hi-1-l.lo)/2
	default:
		l.step, l.asked = halving, l.lo+(l.hi-l.lo)/2
	}
	return l.asked, true
}

// tell says whether it was taken.
func (l *lateSearch) tell(taken bool) {
	switch {
	case taken:
		l.hi = l.asked
		if l.step == askedMiddle {
			l.step = halving // the last one is bad
		}
	case l.step == askedLast && l.asked > l.lo:
		l.step = askedMiddle
	case l.step == askedMiddle:
		l.lo = l.hi
	default:
		l.lo = l.asked + 1
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
