package remotewrite

import (
	"slices"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/wire"
)

// test finds out whether a held target takes requests again, and gives p back. Where an
// empty write is no evidence, and where samples were refused, one of the samples that wait is sent;
// if it is taken, it is settled and leaves the parcel.
func (s *shard) test(p pass, l *parcel, m mode) error {
	g := s.q.gate
	v := g.view()
	passes := v.emptyPasses && !v.byData
	if passes || s.q.timeUnknown() && s.askTimeBy(l) == byEmpty {
		a := s.q.sendEmpty(s.sending, s.q.proto.chooseTest(testEmpty).version)
		if a.Version == wire.V2 && a.Status == client.StatusUnsupported {
			a = s.q.sendEmpty(s.sending, wire.V1)
		}
		switch v := client.Classify(a, s.q.cfg.Policy()); {
		case s.sending.Err() != nil && a.Status == 0:
			g.release(p)
			return s.sending.Err()
		case a.Accepted():
			g.passed(p)
			return nil
		case passes:
			s.q.noteAnswer(a)
			s.q.refused(p, a)
			return nil
		case v == client.Retry:
			s.q.noTime(a)
			g.refused(p, a.String())
			return nil
		}
		// It may refuse empty writes only. If a sample is refused as well, that is all for now.
		s.q.noTime(a)
	}
	alone := s.q.timeUnknown()
	if taken, ok := s.q.takenBefore(); ok && m == patient {
		return s.testTaken(p, taken, s.q.proto.chooseTest(testTaken))
	}
	c := s.q.proto.chooseTest(testHeld)
	all := s.w.readAll() // before it is looked what there is
	sample, later, deep := s.heldSamples(l, m, c.version)
	if alone {
		later = nil
	}
	verdict, a, err := s.testWith(p, l, sample, c)
	if verdict == client.Suspect && m == patient && len(later) > 0 && !fromDatabase(*a) {
		// Every series' oldest sample was refused by now: perhaps these are bad. The next
		// one of this series tells, if it is taken at the same moment.
		refusal, late := a, s.mayHaveSuccessor(sample[0])
		i, read := 0, true
		key := depthKey{sample[0].series.hash, a.Version}
		if deep {
			i, read = s.q.depth(key, refusal.String(), len(later), all)
		}
		if read {
			verdict, a, err = s.testWith(p, l, later[i:i+1:i+1], c)
		}
		switch {
		case !read:
		case verdict == client.Delivered && !late:
			s.buryEach(sample, []client.Answer{*refusal}, 0)
			s.forget(l, sample[0])
		case verdict == client.Suspect && deep:
			s.q.deepen(key) // only now: one that was not refused is not passed over
		}
	}
	switch {
	case err != nil || a == nil:
		return err
	case verdict == client.Delivered:
		if v.byData {
			s.q.restoreBatch()
		}
		g.delivered(p)
	case verdict == client.Older && a.Status/100 == 2:
		l.unsure = true
		g.resume(p) // it takes requests; see what it says to 1.0
	case verdict == client.Suspect && (m != patient || fromDatabase(*a)):
		// The receiver's database speaks. Or, taking a batch apart, which had shown that the way is good: the hold had
		// another reason, and that is gone. What is refused is this sample.
		g.resume(p)
	default:
		s.q.noteAnswer(*a)
		s.q.refused(p, *a)
		if deep && verdict == client.Suspect {
			g.testSoon() // there may be many to go through
		}
	}
	return nil
}

// testTaken tests a held target with a sample that it took before. If it takes that, the
// way is good, and what was refused are the samples.
func (s *shard) testTaken(p pass, taken point, c choice) error {
	one := parcel{points: []point{taken}, again: true}
	a, sent, err := s.post(p, &one, c)
	if err != nil || !sent {
		return err // p was given back
	}
	switch v := client.Classify(a, s.q.cfg.Policy()); {
	case v == client.Delivered:
		s.accepted(&one)
		s.q.restoreBatch()
		s.q.gate.delivered(p)
		return nil
	case v == client.Older && a.Status/100 == 2, v == client.Suspect && fromDatabase(a):
		s.q.gate.resume(p)
		return nil
	}
	s.q.noteAnswer(a)
	s.q.refused(p, a)
	if s.resending && client.Classify(a, s.q.cfg.Policy()) == client.Suspect {
		s.q.gate.testSoon() // it is old by now; the search among the held ones goes on
	}
	return nil
}

// testWith sends one held sample. If it is taken it is settled and leaves the parcel.
// Without an answer p is given back.
func (s *shard) testWith(p pass, l *parcel, sample []point, c choice) (client.Verdict, *client.Answer, error) {
	one := parcel{points: sample, again: l.again}
	if !carries(&s.q.cfg, wire.V1, &sample[0]) {
		c = choice{version: wire.V2}
	}
	a, sent, err := s.post(p, &one, c)
	if err != nil || !sent {
		return client.Hold, nil, err
	}
	v := client.Classify(a, s.q.cfg.Policy())
	s.heardLate(sample, a)
	if v == client.Delivered {
		s.accepted(&one)
		s.forget(l, sample[0])
		s.early = append(s.early, sample[0])
	}
	return v, &a, nil
}

// heldSamples picks a sample to test with, another one each time: a bad one must not
// hold the target for ever. It is the oldest of its series that the shard has, so that
// sending it early does not break the order. When several were tried before, it also
// returns one that follows it in its series, if the shard has that.
func (s *shard) heldSamples(l *parcel, m mode, version wire.Version) (sample, later []point, deep bool) {
	const most = 256
	hands := [][]point{l.points}
	if m == patient && !l.again {
		s.mu.Lock()
		hands = append(hands, s.behind, s.aside, slices.Clone(s.queue.points()))
		s.mu.Unlock()
	}
	var first []point
	newest := s.q.newest()
	s.seen.clear(most)
	for _, points := range hands {
		for _, p := range points {
			if p.t <= newest && p.kind != exemplarPoint && carries(&s.q.cfg, version, &p) && len(first) < most && s.seen.add(p.series.hash) {
				first = append(first, p)
			}
		}
	}
	if len(first) == 0 { // exemplars only, or what 1.0 does not carry
		return l.points[:1:1], nil, false
	}
	// From both ends by turns: neighbours are likely to be bad together.
	n := int(s.q.tests.Add(1) - 1)
	i := n / 2 % len(first)
	if n%2 == 1 {
		i = len(first) - 1 - i
	}
	pairs := n - singleTests
	if _, taken := s.q.lastGood(); pairs < 0 || taken { // what was taken is a test, too
		return first[i : i+1 : i+1], nil, false
	}
	deep = s.resending && pairs >= pairTests
	if deep {
		i = 0
	}
	sample = first[i : i+1 : i+1]
	// Its successor shows that it is bad. If it may be stored already it may be late, and
	// so may some of its successors be: go on with the one after it each time, at one
	// series, so that none is skipped that was not refused.
	for _, points := range hands {
		for _, p := range points {
			if p.kind != exemplarPoint && carries(&s.q.cfg, version, &p) && p.series.hash == first[i].series.hash && p.seq > first[i].seq {
				later = append(later, p)
			}
		}
	}
	return sample, later, deep
}

const (
	// singleTests is how many times a held target is tested with single samples before a second one of
	// the same series is sent, to see whether the first is bad. That is no full contrast, so it is for a
	// target that refused all of these, and that is not known to have taken any sample.
	singleTests = 8
	// pairTests is how many such pairs are sent before the second sample is one further on.
	pairTests = 6
	// takenFrom is how many tests come before those with a sample that was taken before.
	takenFrom = 4
)

// forget takes a point that was sent on its own out of the parcel, or out of what
// comes after it.
func (s *shard) forget(l *parcel, p point) {
	for _, held := range []*[]point{&l.points, &s.behind, &s.aside} {
		if i := slices.IndexFunc(*held, p.same); i >= 0 {
			*held = slices.Delete(*held, i, i+1)
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.queue.points(), p.same); i >= 0 {
		s.queue.remove(i)
	}
}
