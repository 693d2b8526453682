package remotewrite

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/wal"
)

// Some series are refused for ever: the tenant has reached its limit of series, a label is too long, a type
// conflicts. A receiver that stores nothing of a refused request would refuse the good samples beside them,
// round after round. So the shard remembers a series of which the target has never taken a sample, as soon as
// one of its samples was refused alone, with proof (see contrast.go). It is a refused series from then on:
// its samples leave their batch, and are sent after it, in a request with those of other refused series.
//
//	batch of 2000 samples ── 1400 of other series ── one request, taken
//	                      └─ 600 of refused series ─ one request, refused
//	                                                 some of the 600, each alone, refused
//	                                                 a proof for all 600 together
//
// The first sample of a series that is taken makes it a series like any other. A sample is given up only if it
// was refused alone itself, or if refusedSamples earlier samples of its series were.

const (
	// refusedSamples are how many samples of a series must be refused alone, each with proof, before they
	// speak for its other samples: one or two may be bad by themselves.
	refusedSamples = 3
	// refusedFor is how long it takes until a series that speaks for its samples is asked for alone again, in
	// a batch with fewer than isolateBudget such series.
	refusedFor = time.Minute
	// refusedWitnesses is how many samples, of different series, are sent alone at least, each time that
	// samples of refused series are refused together.
	refusedWitnesses = 3
)

// noteRefusedSeries remembers that a sample was refused alone, with proof. The caller has made sure that the
// receiver's words are not about the sample's order or age.
func (s *shard) noteRefusedSeries(p point) {
	switch {
	case p.series.newest > noneTakenOneRefused, s.resending, s.q.behind:
		return // the target has samples of the series, or may have: this one may be late
	case p.series.refusals() < refusedSamples-1:
		p.series.newest, p.series.newestIn = noneTakenOneRefused, p.series.refusals()+1
	default:
		p.series.newestIn = max(refusedSamples, uint64(s.q.sinceBorn()))
	}
	s.q.refusesSeries.Store(true)
}

// refusals is how many samples of a refused series were refused alone, with proof, as long as they are fewer than
// refusedSamples; then the age of the queue, in ns, when one was last. It is 0 for any other series.
func (s *series) refusals() uint64 {
	if s.newest != noneTakenOneRefused {
		return 0
	}
	return s.newestIn
}

// isRefused reports whether the target refuses the series, as far as is known.
func (s *series) isRefused() bool { return s.refusals() > 0 }

// speaksForAll reports whether so many samples of a refused series were refused alone that others of it may be
// given up without that.
func (s *series) speaksForAll() bool { return s.refusals() >= refusedSamples }

// deliverBatch brings every sample of s.batch to its outcome, those of refused series last. The error is ctx's.
func (s *shard) deliverBatch(ctx context.Context) error {
	others, refused := s.batch, []point(nil)
	if s.q.refusesSeries.Load() && !s.q.behind {
		others, refused = splitRefused(s.batch)
	}
	if len(others) == 0 || len(refused) == 0 {
		return s.deliver(ctx, &parcel{points: s.batch})
	}
	s.aside = refused
	err := s.deliver(ctx, &parcel{points: others})
	refused, s.aside = s.aside, nil
	if err != nil || len(refused) == 0 {
		return err
	}
	return s.deliver(ctx, &parcel{points: refused})
}

// splitRefused divides points into those of other series and those of refused series, both in the log's
// order. Series that relabelling has made one stay together. A series that does not speak for all its samples,
// and has several of them here, stays with the others. If it did not, and the agent were killed when the others
// are stored and its samples not yet sent, the next process would take its good samples for stored, too: their
// neighbours in the log are.
func splitRefused(points []point) (others, refused []point) {
	apart := make(map[uint64]bool)
	for i := range points {
		s := points[i].series
		if _, again := apart[s.hash]; s.isRefused() {
			apart[s.hash] = s.speaksForAll() || !again
		}
	}
	if len(apart) == 0 {
		return points, nil
	}
	for _, p := range points {
		if apart[p.series.hash] {
			refused = append(refused, p)
		} else {
			others = append(others, p)
		}
	}
	return others, refused
}

// refusedPart is a part of a refused batch: samples of refused series.
type refusedPart struct {
	s       *shard
	points  []point
	settled []bool                // by index in points: it has its outcome, or was put back
	answers map[int]client.Answer // by index in points, of those that were refused alone
	last    client.Answer         // the last refusal of any of them
}

// giveUpRefused brings samples of refused series to their outcomes, after they were refused together with the
// answer a. It sends some of them alone. Those that are taken are delivered. If the target takes other samples
// meanwhile, those that are refused alone count as rejected, and the rest as unconfirmed. It returns in again
// the samples whose series turned out to be none that speaks for all its samples, and in left all that have no
// outcome because the target is held. The error is ctx's.
func (s *shard) giveUpRefused(ctx context.Context, points []point, a client.Answer) (again, left []point, err error) {
	x := &refusedPart{s: s, points: points, settled: make([]bool, len(points)), answers: make(map[int]client.Answer), last: a}
	if held, err := x.ask(ctx); held || err != nil {
		return nil, unmarked(points, x.settled), err
	}
	var at []int // to give up
	for i, p := range points {
		switch {
		case x.settled[i]:
		case x.refused(i), p.series.speaksForAll():
			at = append(at, i)
		default:
			again = append(again, p)
		}
	}
	for n := 0; len(at) > 0; at = at[n:] {
		n = min(len(at), s.q.batchLimit())
		held, err := x.giveUp(ctx, at[:n])
		if held || err != nil {
			return nil, unmarked(points, x.settled), err
		}
	}
	return again, nil, nil
}

// ask sends the first sample of some series alone: of each series that does not speak for all its samples, of
// each one that was not asked for within refusedFor, and of refusedWitnesses series at least; once one sample is
// taken, of each other series, too. For series that speak for all their samples it sends at most isolateBudget
// samples, and two more for each one that is taken. It reports whether the target is held. The error is ctx's.
func (x *refusedPart) ask(ctx context.Context) (held bool, err error) {
	taken, now := 0, x.s.q.sinceBorn()
	for n, i := range x.order() {
		is := x.points[i].series
		lately := now-int64(is.refusals()) < int64(refusedFor)
		switch {
		case !is.speaksForAll():
		case n >= isolateBudget+2*taken, n >= refusedWitnesses && taken == 0 && lately:
			return false, nil
		}
		f, a, err := x.s.try(ctx, &parcel{points: x.points[i : i+1 : i+1]}, parts)
		switch {
		case errors.Is(err, errDoubted), err == nil && f == stuck:
			return true, nil
		case err != nil:
			return false, err
		case f == settled:
			x.settled[i] = true
			taken++
		default:
			x.answers[i], x.last = a, a
		}
	}
	return false, nil
}

// refused reports whether sample i was refused alone.
func (x *refusedPart) refused(i int) bool { return x.answers[i].Status != 0 }

// order returns the first sample of each series, as indices. Series of which the fewest samples were refused
// come first, then those that were asked for alone the longest time ago.
func (x *refusedPart) order() (first []int) {
	x.s.seen.clear(len(x.points))
	for i := range x.points {
		if x.s.seen.add(x.points[i].series.hash) {
			first = append(first, i)
		}
	}
	slices.SortStableFunc(first, func(i, j int) int {
		return cmp.Compare(x.points[i].series.refusals(), x.points[j].series.refusals())
	})
	return first
}

// giveUp gives up the samples with the indices at, if they are refused together while other samples are taken.
// It reports whether the target is held. The error is ctx's.
func (x *refusedPart) giveUp(ctx context.Context, at []int) (held bool, err error) {
	l := parcel{}
	for _, i := range at {
		l.points = append(l.points, x.points[i])
	}
	c, err := x.s.contrast(ctx, &l, x.last)
	all := len(l.points) == len(at) // if not, the target was held, and took some as tests
	var alone, others []point
	var answers []client.Answer
	for _, i := range at {
		p := x.points[i]
		switch x.settled[i] = c.blame == blameNone || !all && !slices.ContainsFunc(l.points, p.same); {
		case x.settled[i]:
		case x.refused(i):
			alone, answers = append(alone, p), append(answers, x.answers[i])
		default:
			others = append(others, p)
		}
	}
	switch {
	case err != nil || c.blame == blameTarget:
		return true, err
	case c.blame == blameNone:
	case l.unsure: // an answer was lost: samples that are refused now may be stored
		x.s.putBack(l.points, true)
	default:
		for _, p := range alone {
			x.s.noteRefusedSeries(p)
		}
		x.s.buryEach(alone, answers, 0)
		x.s.bury(others, c.answer, wal.Unconfirmed)
	}
	for _, i := range at {
		x.settled[i] = true
	}
	return false, nil
}
