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
	"hwsagent/remotewrite/reply"
)

// A backlog that is refused. A receiver that takes late data takes what it has once more, so
// there a refusal never shows that a sample is stored: it is bad, or older than the receiver's
// window, which may end inside a batch. So nothing of a backlog counts as resent. What is bad is
// given up, as ever. What is merely too late is no reason to give it up where live_first has
// made it late: it waits.

const (
	// lateAsked is how many samples of a refused batch are asked for alone.
	lateAsked = 3
	// asOldAsked is how many more are, as old as the oldest one, if the receiver does not say why it refuses the others: one that is
	// taken shows that they are not refused for their age.
	asOldAsked = 8
)

// refusedBehind brings a refused batch of the backlog to its outcomes, or returns errAllLate.
// Otherwise the error is ctx's.
func (s *shard) refusedBehind(ctx context.Context, l *parcel, a client.Answer) error {
	late, err := s.isLate(ctx, l, a)
	switch {
	case err != nil || len(l.points) == 0:
		return err
	case late && s.q.cfg.Target.CatchUp == config.LiveFirst:
		return errAllLate
	case s.q.cfg.Target.OnRefusal == config.RefusalDrop:
		s.discard(l.points, a)
		return nil
	}
	first := replyOf(refused, a, false, 0, s.q.kind())
	if err = s.bisect(ctx, l, a, &first); err == nil && len(l.points) > 0 {
		err = errHeld
	}
	return err
}

// isLate finds out whether a refused batch is refused for being late. Samples that are taken meanwhile leave the parcel. The samples of
// series that were refused before, and others as old as they were taken, are so only in the receiver's words. The error is ctx's.
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

// tookAsOld reports whether most of a batch was taken, and some of it is as old as the oldest
// of what is left: then it is not for its age that this is refused.
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

// lateness is what is known of why a batch of the backlog was refused.
type lateness struct {
	// late: for being late. None that was asked for was taken, and none refused for another reason. Two series may well be bad
	// together, so with fewer than three the receiver said so.
	late bool
	said bool // it said so of each
	ends bool // a window may end inside the batch: the oldest was refused, and a newer one taken
}

// askLate asks for some samples of a refused batch alone, of different series, from the oldest
// to the newest; those that are taken leave the parcel. The error is ctx's.
func (s *shard) askLate(ctx context.Context, l *parcel, a client.Answer) (lateness, error) {
	if len(l.points) == 1 { // it was asked for alone
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
		case why.Reply().Kind == reply.Bad:
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
	s.seen.clear(lateAsked)
	for _, i := range []int{0, len(points) / 2, len(points) - 1} {
		for ; i < len(points); i++ {
			if p := points[i]; p.kind != exemplarPoint && s.seen.add(p.series.hash) {
				asked = append(asked, p)
				break
			}
		}
	}
	return asked
}

// askAlone asks for a sample alone. If it is taken it leaves the parcel. The error is ctx's.
func (s *shard) askAlone(ctx context.Context, l *parcel, p point) (taken bool, why client.Answer, err error) {
	f, why, err := s.try(ctx, &parcel{points: []point{p}}, parts)
	if err != nil || f != settled {
		return false, why, err
	}
	l.points = slices.DeleteFunc(slices.Clone(l.points), p.same)
	return true, why, nil
}

// takesAsOld asks for others, at random, as old as the oldest of those that were refused, and of its kind: a receiver may take floats late,
// and no histograms. It reports whether one was taken, or refused for another reason. The error is ctx's.
func (s *shard) takesAsOld(ctx context.Context, l *parcel, refused []point) (bool, error) {
	first := refused[0]
	others := slices.DeleteFunc(slices.Clone(l.points), func(p point) bool {
		return p.t > first.t || p.kind != first.kind || slices.ContainsFunc(refused, func(r point) bool { return r.series.hash == p.series.hash })
	})
	for range min(asOldAsked, len(others)) {
		i := int(s.q.gate.Random() * float64(len(others)))
		taken, why, err := s.askAlone(ctx, l, others[i])
		if err != nil || taken || why.Reply().Kind == reply.Bad {
			return err == nil, err
		}
		others = slices.Delete(others, i, i+1)
	}
	return false, nil
}

// deliverNewest delivers the newest samples of a refused batch, as far back as they are taken
// together, and leaves the others in the parcel. Where late data is taken the order does not
// matter. It takes a request for each halving.
func (s *shard) deliverNewest(ctx context.Context, l *parcel) (requests int, err error) {
	points := s.withoutExemplars(l.points)
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.t, b.t) })
	// Invariant: what comes from hi on has its outcome; of lo up to hi some may be taken.
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
		default: // some may have got their outcome as tests
			hi = mid + copy(points[mid:], part.points)
			lo = min(mid+1, hi)
		}
		points = points[:hi]
	}
	l.points = inLogOrder(points)
	return requests, nil
}

// guardsLate reports whether what is refused may be refused for nothing but its place: that
// is no reason to give it up where live_first has made it late.
func (l *lane) guardsLate() bool { return l.behind && l.cfg.Target.CatchUp == config.LiveFirst }

// failed gives p back after a failure that passes by itself. What a request of the backlog is
// answered while what is live goes through slows the backlog down, and nothing else: one batch
// may be too much, or what the receiver fails at.
func (l *lane) failed(p gate.Pass, a client.Answer) {
	if !p.Behind || a.Status == 0 {
		l.gate.Failed(p, a.String(), a.RetryAfter, a.Status != 0)
		return
	}
	l.gate.Release(p)
	l.rested = time.Now().Add(max(l.pauses.Next(l.gate.Random(), false), pace.RetryLate(a.RetryAfter, l.gate.Random())))
}
