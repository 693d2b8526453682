package remotewrite

import (
	"context"
	"slices"
)

// test finds out whether a held target takes requests again, and gives p back. Where an
// empty write is no evidence, one of the held samples is sent; if it is taken, it is
// settled and leaves the parcel.
func (s *shard) test(p pass, l *parcel, m mode) error {
	g := s.q.gate
	if g.view().emptyPasses {
		a := s.q.send(s.sending, Request{Body: s.q.empty})
		switch {
		case s.sending.Err() != nil && a.Status == 0:
			g.release(p)
			return s.sending.Err()
		case a.Status/100 == 2:
			g.passed(p)
		default:
			s.q.noteAnswer(a)
			g.refused(p, a.String())
		}
		return nil
	}
	one := parcel{points: s.heldSample(l, m), again: l.again}
	a, sent, err := s.post(p, &one)
	switch v := Classify(a, s.q.cfg.Policy()); {
	case err != nil:
		return err
	case !sent:
	case v == Delivered:
		s.accepted(&one)
		s.forget(l, one.points[0])
		g.delivered(p)
	case v == Suspect && m != patient:
		// Taking a batch apart, which had shown that the way is good: the hold had
		// another reason, and that is gone. What is refused is this sample.
		g.resume(p)
	default:
		s.q.noteAnswer(a)
		g.refused(p, a.String())
	}
	return nil
}

// heldSample picks a sample to test with, another one each time: a bad one must not
// hold the target for ever. It is the oldest of its series that the shard has, so that
// sending it early does not break the order.
func (s *shard) heldSample(l *parcel, m mode) []point {
	const most = 256
	var first []point
	clear(s.seen)
	add := func(points []point) {
		for i := range points {
			h := points[i].series.hash
			if _, later := s.seen[h]; later || points[i].kind == exemplarPoint || len(first) == most {
				continue
			}
			s.seen[h] = struct{}{}
			first = append(first, points[i])
		}
	}
	add(l.points)
	if m == patient && !l.again {
		add(s.behind)
		s.mu.Lock()
		add(s.queue.points())
		s.mu.Unlock()
	}
	if len(first) == 0 { // exemplars only
		return l.points[:1:1]
	}
	// From both ends by turns: neighbours are likely to be bad together.
	n := int(s.q.tests.Add(1) - 1)
	i := n / 2 % len(first)
	if n%2 == 1 {
		i = len(first) - 1 - i
	}
	return []point{first[i]}
}

// forget takes a point that was sent on its own out of the parcel, or out of what
// comes after it.
func (s *shard) forget(l *parcel, p point) {
	same := func(q point) bool { return q.series == p.series && q.seq == p.seq && q.t == p.t && q.kind == p.kind }
	for _, held := range []*[]point{&l.points, &s.behind} {
		if i := slices.IndexFunc(*held, same); i >= 0 {
			*held = slices.Delete(*held, i, i+1)
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.queue.points(), same); i >= 0 {
		s.queue.remove(i)
	}
}

// confirm finds out, before samples are given up that were refused, whether the way to
// the receiver was good all the time: it sends an empty write where that is evidence,
// else, or if data is asked for, a sample that was taken before; a series' newest
// sample may be sent again everywhere. False means that something was wrong meanwhile,
// and is over: the refusals prove nothing. The error is ctx's.
func (s *shard) confirm(ctx context.Context, data bool) (clean bool, err error) {
	g := s.q.gate
	if data || !g.view().emptyPasses {
		if !s.hasGood {
			return true, nil // nothing to send; the refusal itself was taken for real before
		}
		l := parcel{points: []point{s.good}, again: true}
		before := g.view().troubles
		f, _, err := s.try(ctx, &l, patient)
		return f == settled && g.view().troubles == before, err
	}
	for clean = true; ; clean = false {
		p, err := g.enter(ctx)
		if err != nil {
			return false, err
		}
		a := s.q.send(s.sending, Request{Body: s.q.empty})
		switch {
		case s.sending.Err() != nil && a.Status == 0:
			g.release(p)
			return false, s.sending.Err()
		case a.Status/100 == 2 && p.test:
			g.passed(p)
			return false, nil
		case a.Status/100 == 2:
			g.release(p)
			return clean, nil
		case Classify(a, Policy{RetryOnRateLimit: true}) == Retry && !p.test:
			g.failed(p, a.String(), a.RetryAfter, a.Status != 0)
		default:
			g.refused(p, a.String())
		}
		s.q.noteAnswer(a)
	}
}
