package remotewrite

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sort"

	"hwsagent/remotewrite/client"
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
// good: if not, they are sent again before anything that comes after them is. Otherwise that
// would be stored, and they would be refused for it.

// resendChunk is the most samples in a chunk.
const resendChunk = 500

// resend brings every sample to its outcome. The prefix property holds within each of
// so many lanes, by hash. It owns the points, of which there may be many: there is no second
// copy. The error is ctx's.
func (s *shard) resend(ctx context.Context, points []point, n int) error {
	if points = s.settleTaken(points); len(points) == 0 {
		return nil
	}
	r := resender{s: s, lanes: newLanes(points, n), believed: map[pointKey]bool{}}
	s.resending, s.behind = true, r.lanes.sort(points)
	defer func() { s.resending, s.behind = false, nil }()
	for len(s.behind) > 0 || len(r.stored) > 0 || r.weak != nil {
		var err error
		switch v := s.q.gate.view(); {
		case r.weak != nil && (len(s.behind) == 0 || r.lanes.of(s.behind[0]) != r.lane || r.trust.broken(v)):
			_, err = r.confirm(ctx, nil)
		case len(s.behind) == 0 || len(r.stored) > 0 && r.trust.broken(v):
			_, err = r.settle(ctx, nil)
		default:
			r.trustFrom(v.trust())
			err = r.next(ctx)
		}
		if errors.Is(err, errDoubted) {
			err = r.startOver(ctx)
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
	trust    trust // when the first of the stored chunks was sent
	doubts   int   // see maxDoubts

	// expect: the chunk before was stored, so this one is likely to be.
	expect bool
	weak   *found // the chunk before, if that it was stored is to be confirmed; see lateSearch
	turn   int    // which sample between the first and the last is asked for next
}

// found is what is known of a chunk of which the first, the last and another sample were
// refused.
type found struct {
	chunk []point
	order []int // of its samples that may be late; see bySuccessor
	find  lateSearch
	taken []bool          // by index in chunk
	why   []client.Answer // likewise, of those that were refused
}

// isBefore reports whether the chunk has a sample of the series that was not asked for alone.
func (f *found) isBefore(series *series) bool {
	i := slices.IndexFunc(f.chunk, func(p point) bool { return p.series.hash == series.hash })
	return i >= 0 && !f.taken[i] && f.why[i].Status == 0
}

// pointKey names a sample of a batch.
type pointKey struct{ hash, seq uint64 }

func (p point) key() pointKey { return pointKey{p.series.hash, p.seq} }

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
		if len(r.stored) > 0 {
			if clean, err := r.settle(ctx, chunk); !clean {
				return err
			}
		}
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
			done, err := r.s.tooLargeAlone(ctx, &l, a)
			if !done && err == nil {
				r.s.putBack(l.points, true)
			}
			return err
		case f == stuck:
			return r.s.deliver(ctx, &l)
		}
		chunk = l.points
		if r.weak == nil {
			r.trustFrom(l.before) // nothing that was before it is sent counts
		}
	}
	chunk = r.s.withoutExemplars(chunk)
	if len(chunk) == 0 {
		return nil
	}
	return r.search(ctx, chunk)
}

// search finds out what of a refused chunk was stored, and brings it to its outcomes.
func (r *resender) search(ctx context.Context, chunk []point) (err error) {
	chunk, err = r.searchBelieved(ctx, chunk)
	if err != nil || len(chunk) == 0 {
		return err
	}
	rest, chunk := r.s.w.setBack(chunk)
	order := r.bySuccessor(chunk)
	f := &found{chunk: chunk, order: order, find: newLateSearch(len(order), r.turn), taken: make([]bool, len(chunk)), why: make([]client.Answer, len(chunk))}
	r.turn++
	defer func() {
		if errors.Is(err, errDoubted) {
			r.s.putBack(inLogOrder(append(rest, f.open()...)), true)
		}
	}()
	if r.weak != nil && len(order) > 0 && r.weak.isBefore(chunk[order[0]].series) {
		// If this one is taken, the one before it can be taken no more.
		if ok, err := r.confirm(ctx, append(rest, chunk...)); !ok {
			return err
		}
	}
	if err := r.run(ctx, f); err != nil {
		return err
	}
	if f.find.all() && len(order) > 1 {
		if r.weak == nil && !r.expect {
			f.find.check() // the first of them: nothing else shows that anything is stored
			if err := r.run(ctx, f); err != nil {
				return err
			}
		}
		if f.find.all() {
			r.proven()
			r.weak, r.expect = f, true
			if len(rest) == 0 {
				return nil
			}
			return r.s.deliver(ctx, &parcel{points: rest}) // it is older than what the target took
		}
	}
	if f.find.lo > 1 {
		r.proven()
	} else if ok, err := r.confirm(ctx, append(rest, f.open()...)); !ok {
		return err
	}
	left, err := r.conclude(ctx, f)
	if err != nil {
		return err
	}
	r.expect = f.find.lo > 0 && f.find.all()
	return r.deliver(ctx, append(rest, left...))
}

// run asks for samples until the search ends.
func (r *resender) run(ctx context.Context, f *found) (err error) {
	for {
		n, ok := f.find.next()
		if !ok {
			return nil
		}
		i := f.order[n]
		if f.taken[i], f.why[i], err = r.ask(ctx, f.chunk[i]); err != nil {
			return err
		}
		f.find.tell(f.taken[i])
	}
}

// proven takes the chunk before for stored: what came after it is.
func (r *resender) proven() {
	if r.weak != nil {
		r.stored = append(r.stored, r.weak.open()...)
		r.weak = nil
	}
}

// confirm finds out whether all of the chunk before was stored, since nothing that came
// after it shows that. If not, what was not is delivered, and then is put back: it comes after
// that.
func (r *resender) confirm(ctx context.Context, then []point) (ok bool, err error) {
	f := r.weak
	if f == nil {
		return true, nil
	}
	f.find.check()
	if err := r.run(ctx, f); err != nil {
		return false, err
	}
	if f.find.all() {
		r.proven()
		return true, nil
	}
	r.weak, r.expect = nil, false
	left, err := r.conclude(ctx, f)
	if err != nil {
		return false, err
	}
	if len(then) > 0 {
		r.s.putBack(inLogOrder(then), true)
	}
	return false, r.deliver(ctx, left)
}

// open returns what was not taken when it was asked for.
func (f *found) open() []point { return unmarked(f.chunk, f.taken) }

// conclude notes which samples of a chunk are stored, and returns those that are not.
func (r *resender) conclude(ctx context.Context, f *found) (left []point, err error) {
	late := make([]bool, len(f.chunk))
	var stored []point
	for _, i := range f.order[:f.find.lo] {
		late[i] = true
	}
	for i, p := range f.chunk {
		switch {
		case f.taken[i]:
		case late[i] && f.find.lo == 1 && len(f.order) > 1 && !r.expect:
			// Nothing else was stored that has a successor: this sample is bad.
			is, _, err := r.s.storedAsLate(ctx, p, f.why[i])
			switch {
			case err != nil:
				return nil, err
			case is:
				stored = append(stored, p)
			default:
				r.s.buryEach([]point{p}, []client.Answer{f.why[i]}, 0)
			}
		case late[i]:
			stored = append(stored, p)
		default:
			left = append(left, p) // stored and the newest, or fresh: it is taken
		}
	}
	r.stored = append(r.stored, stored...)
	return left, nil
}

// deliver brings what is not stored, or the newest of its series, to its outcomes, after what
// was found stored before it.
func (r *resender) deliver(ctx context.Context, points []point) error {
	if len(points) == 0 {
		return nil
	}
	if len(r.stored) > 0 {
		if clean, err := r.settle(ctx, points); !clean {
			return err
		}
	}
	return r.s.deliver(ctx, &parcel{points: inLogOrder(points)})
}

// ask sends one sample. A refusal counts only if the receiver's database says that it is late, or with
// contrast: else the error is errDoubted.
func (r *resender) ask(ctx context.Context, p point) (taken bool, a client.Answer, err error) {
	l := parcel{points: []point{p}, unsure: true, trusted: &r.trust}
	f, a, err := r.s.try(ctx, &l, parts)
	if err != nil || f == settled || saysLate(a) {
		return err == nil && f == settled, a, err
	}
	if f == stuck {
		return false, a, errDoubted
	}
	c, err := r.s.contrast(ctx, &l, a)
	if err == nil && c.blame == blameTarget {
		err = errDoubted
	}
	return err == nil && c.blame == blameNone, c.answer, err
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
