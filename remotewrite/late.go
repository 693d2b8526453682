package remotewrite

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"hwsagent/remotewrite/client"
	"hwsagent/wal"
)

// Late samples: those that are not newer than what the target has of their series. They
// come when the host's clock is set back, or from a source that delivers late. Prometheus
// without an out-of-order window refuses the whole request for one of them, for as long as
// the clock is behind, so what shares a batch with them must not share their fate: a refused
// batch is cut by what is known of its series first, and each part is isolated by itself.

// standing is what is known of a sample before it is sent again. The order is that of
// sending: no part's share of the budget is spent by one behind it.
type standing uint8

const (
	fresh         standing = iota // newer than what the target took: its order is no reason to refuse it
	unproven                      // the target took nothing of its series since the process began
	refusedSeries                 // the target refuses the whole series, as far as is known; see refusedseries.go
	late                          // not newer than what the target took, or than one before it in the batch
)

const (
	// lateBudget is how many requests late samples may always cost, whatever was spent on
	// the others, and all that they may at a receiver that is known not to take them.
	lateBudget = 8
	// lateWitnesses are how many late samples are asked for there, of different series.
	lateWitnesses = 3
)

// noteTaken notes what the target has of each series. The points are a shard's, whose
// goroutine calls it, and have no outcome yet.
func (w *window) noteTaken(points []point) {
	seq, commit := uint64(0), uint64(0)
	for i := range points {
		p := &points[i]
		if p.kind == exemplarPoint || p.t <= p.series.newest {
			continue
		}
		if p.seq != seq {
			seq, commit = p.seq, w.commitOf(p.seq)
		}
		p.series.newest, p.series.newestIn = p.t, commit
	}
}

// setBack takes those points out that came after what the target has of their series, and
// are not newer: whatever was stored of the others, these were late when they were first
// sent.
func (w *window) setBack(points []point) (set, others []point) {
	for _, p := range points {
		if p.t <= p.series.newest && p.series.newestIn < w.commitOf(p.seq) {
			set = append(set, p)
		} else {
			others = append(others, p)
		}
	}
	return set, others
}

// standings says of each point of a batch, in the log's order, what is known of it. Series
// that relabelling has made one are one.
func standings(points []point) []standing {
	have := make(map[uint64]int64, len(points)) // what the target has
	many := make(map[uint64]bool)               // several of a series
	for i := range points {
		s := points[i].series
		t, ok := have[s.hash]
		if !ok || s.newest > t {
			have[s.hash] = s.newest
		}
		many[s.hash] = ok
	}
	sent := make(map[uint64]int64, len(have)) // the newest before it in the batch
	is := make([]standing, len(points))
	for i := range points {
		p := &points[i]
		has, before := have[p.series.hash], int64(noneTaken)
		if t, ok := sent[p.series.hash]; ok {
			before = t
		}
		switch {
		case has == noneTakenOneRefused && p.series.isRefused() && (p.series.speaksForAll() || !many[p.series.hash]):
			is[i] = refusedSeries
		case p.t <= max(has, before), has == noneTakenOneRefused && !many[p.series.hash]:
			is[i] = late
		case has <= noneTakenOneRefused:
			// Of several of a series that had one refused, the first that is taken is looked for.
			is[i] = unproven
		}
		sent[p.series.hash] = max(before, p.t)
	}
	return is
}

// firstPart returns the points of the first standing that there is, and the others, both
// in the log's order.
func firstPart(points []point) (part, others []point, is standing) {
	all := standings(points)
	is = slices.Min(all)
	for i := range points {
		if all[i] == is {
			part = append(part, points[i])
		} else {
			others = append(others, points[i])
		}
	}
	return part, others, is
}

// isolate delivers the good samples of a refused batch and gives up the bad ones. Each turn brings a
// part to its outcomes, and looks anew at what is left: what was late for a sample before it is not,
// if that was refused. If nothing shows that the samples are at fault, the target is held, done is
// false, and the parcel has what is left. The error is ctx's.
func (s *shard) isolate(ctx context.Context, l *parcel, a client.Answer) (done bool, err error) {
	points := s.withoutExemplars(l.points)
	budget, askedLate := isolateBudget, false
	var paid pay // in the turns with fresh samples
	if saysBeyondWindow(a) {
		l.points = points
		spent, err := s.deliverNewest(ctx, l)
		if err != nil {
			return false, notHeld(err)
		}
		points, budget = l.points, budget-spent
	}
	for whole := true; len(points) > 0; whole = false {
		part, others, is := firstPart(points)
		if s.q.behind { // where late data is taken, the order is no reason
			part, others, is = points, nil, fresh
		}
		if is == refusedSeries {
			again, left, err := s.giveUpRefused(ctx, part, a)
			points = inLogOrder(append(again, others...))
			if err != nil || len(left) > 0 {
				l.points = inLogOrder(append(left, points...))
				return false, notHeld(err)
			}
			continue
		}
		job := cutting{mode: parts, unproven: is == unproven, known: whole && len(others) == 0, budget: budget, rollsBack: s.q.behind, resent: s.resending}
		switch {
		case is == unproven:
			job.budget = isolateBudget
		case is == late:
			// What is late is refused beside what is newer: that tells nothing of the receiver's kind.
			job.rollsBack = true
			s.q.late.note(part)
			if !askedLate {
				job.budget, askedLate = max(budget, lateBudget), true
			}
			if s.q.refusesLate() {
				part, others = s.lateWitnesses(part)
				job.known, job.budget = false, min(job.budget, lateBudget)
			}
		}
		r, err := s.cut(ctx, part, job)
		if err != nil {
			return false, err
		}
		if len(r.doubted) > 0 {
			s.putBack(r.doubted, true)
		}
		if r.held {
			l.points = inLogOrder(append(r.left(), others...))
			return len(l.points) == 0, nil
		}
		s.w.noteTaken(r.stored)
		s.w.settleAll(r.stored, one(wal.Resent))
		s.buryEach(r.bad, r.answers, len(r.givenUp))
		s.buryOneOf(r.suspects, a)
		points = others
		if is == fresh {
			paid.add(r)
		}
		switch decided := len(part) > len(r.unknown); {
		case is == fresh && len(r.unknown) > 0 && paid.goodEnough():
			points, budget = inLogOrder(append(r.unknown, others...)), isolateBudget
			continue
		case is == late:
			s.q.sawLate(r.passed, len(r.givenUp)+len(r.bad))
			left := inLogOrder(append(r.unknown, others...))
			if r.passed > 0 { // then more of them may be taken
				forgetRefused(left)
				r.unknown, points = nil, left
			} else {
				r.unknown, points = left, nil
			}
		case is == unproven:
			noteRefused(append(r.givenUp, r.bad...))
			if decided { // go on with what is left, until each is known
				r.unknown, points = nil, inLogOrder(append(r.unknown, others...))
				continue
			}
		}
		budget = max(budget-r.requests, 0)
		if left, err := s.giveUpUnknown(ctx, r.unknown, a); err != nil || len(left) > 0 {
			l.points = inLogOrder(append(left, points...))
			return false, err
		}
	}
	return true, nil
}

// notHeld is the error unless it says that the target is held.
func notHeld(err error) error {
	if errors.Is(err, errDoubted) {
		return nil
	}
	return err
}

// giveUpUnknown gives up, all with one letter, samples that the budget did not suffice for, if they are
// refused together while others are taken, or the receiver's database has said of the batch that it
// is late. It returns those that have no outcome, because the target is held. The error is ctx's.
func (s *shard) giveUpUnknown(ctx context.Context, points []point, a client.Answer) (left []point, err error) {
	for len(points) > 0 {
		n := len(points)
		if !final(a, points...) {
			n = min(n, s.q.batchLimit())
			l := parcel{points: slices.Clone(points[:n])}
			c, err := s.contrast(ctx, &l, a)
			switch {
			case c.blame == blameTarget || err != nil:
				return slices.Concat(l.points, points[n:]), err
			case l.unsure: // an answer was lost: what is refused now may be stored
				s.putBack(l.points, true)
			case c.blame == blameSamples:
				s.bury(l.points, a, wal.Unconfirmed)
			}
		} else {
			s.bury(points, a, wal.Unconfirmed)
		}
		points = points[n:]
	}
	return nil, nil
}

// noteRefused notes that samples were refused alone: where the target is not known to have
// taken anything of their series, it may have what is newer.
func noteRefused(points []point) {
	for i := range points {
		if s := points[i].series; s.newest == noneTaken {
			s.newest = noneTakenOneRefused
		}
	}
}

// forgetRefused has series asked for again of which it is not known what the target has:
// it has begun to take what it refused.
func forgetRefused(points []point) {
	for i := range points {
		if s := points[i].series; s.newest == noneTakenOneRefused {
			s.newest, s.newestIn = noneTaken, 0
		}
	}
}

// lateWitnesses picks those that are asked for in the name of all late ones, each time
// others of those that are nearest to what the target takes.
func (s *shard) lateWitnesses(points []point) (witnesses, others []point) {
	gap := func(p point) int64 {
		if p.series.newest == noneTakenOneRefused {
			return 0 // it may be anything
		}
		return p.series.newest - p.t
	}
	s.lateTurn++
	turn := s.lateTurn % len(points)
	order := slices.Concat(points[turn:], points[:turn])
	slices.SortStableFunc(order, func(a, b point) int { return cmp.Compare(gap(a), gap(b)) })
	s.seen.clear(len(order))
	for _, p := range order {
		if len(witnesses) < lateWitnesses && s.seen.add(p.series.hash) {
			witnesses = append(witnesses, p)
		} else {
			others = append(others, p)
		}
	}
	return inLogOrder(witnesses), inLogOrder(others)
}

// strictAfter is how many late samples must have been refused alone, none taken meanwhile.
const strictAfter = 3

// refusesLate reports whether the target is known to take nothing that is late.
func (q *Queue) refusesLate() bool { return q.lateRefused.Load() >= strictAfter }

// sawLate notes what became of late samples.
func (q *Queue) sawLate(taken, refused int) {
	if taken > 0 {
		q.lateRefused.Store(0)
	} else {
		q.lateRefused.Add(int64(refused))
	}
}
