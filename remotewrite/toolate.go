package remotewrite

import (
	"cmp"
	"context"
	"slices"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/pace"
)

// This file handles a refused backlog. A receiver that accepts late data also accepts a stored sample again, so a refusal
// never shows there that a sample is stored: it is bad, or older than the receiver's window, which may end inside a batch. So no sample of a
// backlog counts as resent. Bad samples are given up as usual. Samples that are only too late wait, because live_first
// made them late.

const (
	// lateAsked is how many samples of a refused batch are sent alone.
	lateAsked = 3
	// asOldAsked is how many more samples, as old as the oldest one, are sent alone if the receiver does not say why it
	// refuses the others: if one is accepted, the others are not refused for their age.
	asOldAsked = 8
)

// refusedBehind settles a refused batch of the backlog, or returns errAllLate. Any other error is errHeld, or one of
// try's.
func (s *shard) refusedBehind(ctx context.Context, l *parcel, a client.Answer) error {
	late, err := s.isLate(ctx, l, a)
	switch {
	case err != nil || len(l.points) == 0:
		return err
	case late && s.q.cfg.Target.CatchUp == config.LiveFirst:
		return errAllLate
	case s.q.drops():
		s.discard(l.points, a)
		return nil
	}
	first := replyOf(refused, a, false, 0, s.q.kind())
	if err = s.bisect(ctx, l, a, &first); err == nil && len(l.points) > 0 {
		err = errHeld
	}
	return err
}

// isLate finds out whether a batch was refused for being late. Samples that are accepted meanwhile leave the parcel.
// Samples of series that were refused before, and samples as old as accepted ones, count as late only if the receiver
// says so. The error is ctx's.
func (s *shard) isLate(ctx context.Context, l *parcel, a client.Answer) (bool, error) {
	if l.apart == isRefused && !a.SaysLate() {
		return false, nil
	}
	batch := l.points
	is, err := s.askLate(ctx, l, a)
	if err != nil || !is.ends {
		return is.late, err
	}
	if _, err = s.deliverNewest(ctx, l); err != nil || len(l.points) == 0 {
		return false, err
	}
	is, err = s.askLate(ctx, l, a)
	return is.late && (is.said || !tookAsOld(batch, l.points)), err
}

// tookAsOld reports whether most of a batch was accepted, and some of that is as old as the oldest sample left: then
// the rest was not refused for its age.
func tookAsOld(batch, left []point) bool {
	oldest := slices.MinFunc(left, func(a, b point) int { return cmp.Compare(a.t, b.t) }).t
	samples := func(points []point) (all, asOld int) {
		for i := range points {
			if points[i].kind == exemplarPoint {
				continue
			}
			if all++; points[i].t <= oldest {
				asOld++
			}
		}
		return all, asOld
	}
	sent, sentAsOld := samples(batch)
	waits, waitAsOld := samples(left)
	return sent > 2*waits && sentAsOld > waitAsOld
}

// lateness is what is known about why a batch of the backlog was refused.
type lateness struct {
	// late: it was refused for being late. Every sample sent alone was refused, and none for another reason. Two series
	// may be bad at the same time, so with fewer than three samples the receiver must have said so.
	late bool
	said bool // the receiver said so for each sample
	ends bool // the receiver's window may end inside the batch: the oldest sample was refused, and a newer one accepted
}

// askLate sends some samples of a refused batch alone, of different series, from the oldest to the newest; accepted
// ones leave the parcel. The error is ctx's.
func (s *shard) askLate(ctx context.Context, l *parcel, a client.Answer) (lateness, error) {
	if len(l.points) == 1 { // it was sent alone
		return lateness{late: a.SaysLate(), said: a.SaysLate()}, nil
	}
	asked := s.pickLate(l.points)
	refusals, said, oldest := 0, true, false
	for n, p := range asked {
		taken, why, err := s.askAlone(ctx, l, p)
		switch {
		case err != nil:
			return lateness{}, err
		case taken:
			continue
		case why.Reason == client.ReasonFault || why.Reason == client.ReasonFuture:
			return lateness{}, nil
		}
		refusals, said, oldest = refusals+1, said && why.SaysLate(), oldest || n == 0
	}
	switch {
	case refusals < len(asked):
		return lateness{ends: oldest}, nil
	case said || refusals < lateAsked:
		return lateness{late: said, said: said}, nil
	}
	taken, err := s.takesAsOld(ctx, l, asked)
	return lateness{late: !taken}, err
}

// pickLate picks samples of different series, from the oldest to the newest.
func (s *shard) pickLate(points []point) (asked []point) {
	s.seen.Clear(lateAsked)
	for _, i := range []int{0, len(points) / 2, len(points) - 1} {
		for ; i < len(points); i++ {
			if p := points[i]; p.kind != exemplarPoint && s.seen.Add(p.series.hash) {
				asked = append(asked, p)
				break
			}
		}
	}
	return asked
}

// askAlone sends a sample alone. If it is accepted, it leaves the parcel. The error is ctx's.
func (s *shard) askAlone(ctx context.Context, l *parcel, p point) (taken bool, why client.Answer, err error) {
	f, why, err := s.try(ctx, &parcel{points: []point{p}}, parts)
	if err != nil || f != settled {
		return false, why, err
	}
	l.points = without(l.points, p)
	return true, why, nil
}

// takesAsOld sends other samples alone, chosen at random, that are as old as the oldest refused one and of the same
// kind: a receiver may accept late floats, but no late histograms. It reports whether one was accepted, or refused for
// another reason. The error is ctx's.
func (s *shard) takesAsOld(ctx context.Context, l *parcel, refused []point) (bool, error) {
	first := refused[0]
	others := slices.DeleteFunc(slices.Clone(l.points), func(p point) bool {
		return p.t > first.t || p.kind != first.kind || slices.ContainsFunc(refused, func(r point) bool { return r.series.hash == p.series.hash })
	})
	for range min(asOldAsked, len(others)) {
		i := int(s.q.gate.Random() * float64(len(others)))
		taken, why, err := s.askAlone(ctx, l, others[i])
		if err != nil || taken || why.Reason == client.ReasonFault || why.Reason == client.ReasonFuture {
			return err == nil, err
		}
		others = slices.Delete(others, i, i+1)
	}
	return false, nil
}

// deliverNewest delivers the newest samples of a refused batch, as far back as they are accepted together, and leaves
// the others in the parcel. Where late data is accepted, the order does not matter. Each halving takes one request.
func (s *shard) deliverNewest(ctx context.Context, l *parcel) (requests int, err error) {
	points := s.withoutExemplars(l.points)
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.t, b.t) })
	// Invariant: points from hi on have their outcome; some of those from lo to hi may be accepted.
	for lo, hi := 0, len(points); lo < hi; requests++ {
		mid := lo + (hi-lo)/2
		part := parcel{points: slices.Clone(points[mid:hi])}
		f, _, err := s.try(ctx, &part, parts)
		switch {
		case err != nil:
			l.points = inLogOrder(points[:hi])
			return requests, err
		case f == settled:
			hi = mid
		default: // some may have been settled as tests
			hi = mid + copy(points[mid:], part.points)
			lo = min(mid+1, hi)
		}
		points = points[:hi]
	}
	l.points = inLogOrder(points)
	return requests, nil
}

// guardsLate reports whether samples may be refused only for their age or order: that is no reason to give them up
// where live_first made them late.
func (l *lane) guardsLate() bool { return l.behind && l.cfg.Target.CatchUp == config.LiveFirst }

// failed gives p back after a failure that may pass. While live requests succeed, a failed request of the backlog slows
// down only the backlog: one batch may be too much, or be what the receiver fails at.
func (l *lane) failed(p gate.Pass, a client.Answer) {
	if !p.Behind || a.Status == 0 {
		l.gate.Failed(p, a.Why(), a.RetryAfter, a.Status != 0)
		return
	}
	l.gate.Release(p)
	l.rested = time.Now().Add(max(l.pauses.Next(l.gate.Random(), false), pace.RetryLate(a.RetryAfter, l.gate.Random())))
}
