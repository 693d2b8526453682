package remotewrite

import (
	"slices"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/protocol"
	"hwsagent/remotewrite/wire"
)

// test finds out whether a held target takes requests again, and gives p back. Where an
// empty write is no evidence, and where samples were refused, one of the samples that wait is sent;
// if it is taken, it is settled and leaves the parcel.
func (s *shard) test(p gate.Pass, l *parcel, m mode) error {
	g := s.q.gate
	v := g.View()
	if passes := v.EmptyPasses && !v.ByData; passes || s.q.timeUnknown() && s.askTimeBy(l) == byEmpty {
		if done, err := s.testByEmpty(p, passes); done || err != nil {
			return err
		}
	}
	alone := s.q.timeUnknown()
	if taken, ok := s.q.takenBefore(); ok && m == patient {
		return s.testTaken(p, taken, s.q.proto.ChooseTest(protocol.ByTaken))
	}
	c := s.q.proto.ChooseTest(protocol.ByHeld)
	sample, later := s.heldSamples(l, m, c.Version)
	if alone {
		later = nil
	}
	verdict, a, err := s.testWith(p, l, sample, c)
	if verdict == client.Suspect && m == patient && len(later) > 0 && !a.FromDatabase() {
		// No other series waits, and this sample was refused each time: perhaps it is bad.
		verdict, a, err = s.testPair(p, l, sample, later, c)
	}
	switch {
	case err != nil || a == nil:
		return err
	case verdict == client.Delivered:
		if v.ByData {
			s.q.restoreBatch()
		}
		g.Delivered(p)
	case verdict == client.Older && a.Status/100 == 2:
		l.unsure = true
		g.Resume(p) // it takes requests; see what it says to 1.0
	case verdict == client.Suspect && (m != patient || a.FromDatabase()):
		// The receiver's database speaks. Or, taking a batch apart, which had shown that the way is good: the hold had
		// another reason, and that is gone. What is refused is this sample.
		g.Resume(p)
	default:
		s.q.noteAnswer(*a)
		s.q.refused(p, *a)
	}
	return nil
}

// testPair sends a held sample, which was refused just now, once more, after the next one of its series. If that is taken and the
// sample is refused again, the sample is bad, or late by now.
func (s *shard) testPair(p gate.Pass, l *parcel, sample, later []point, c protocol.Choice) (client.Verdict, *client.Answer, error) {
	verdict, a, err := s.testWith(p, l, later, c)
	if verdict != client.Delivered {
		return verdict, a, err
	}
	again, refusal, err := s.testWith(p, l, sample, c)
	if err != nil || refusal == nil {
		return again, nil, err
	}
	if again == client.Suspect {
		s.buryEach(sample, []client.Answer{*refusal}, 0)
		s.forget(l, sample[0])
	}
	return client.Delivered, refusal, nil
}

// testByEmpty tests a held target with an empty write, and gives p back if done. passes says that the target takes empty writes
// when it is well.
func (s *shard) testByEmpty(p gate.Pass, passes bool) (done bool, err error) {
	a := s.q.sendEmpty(s.sending, s.q.proto.ChooseTest(protocol.ByEmpty).Version)
	if a.Version == wire.V2 && a.Status == client.StatusUnsupported {
		a = s.q.sendEmpty(s.sending, wire.V1)
	}
	g := s.q.gate
	switch v := client.Classify(a, s.q.cfg.Policy()); {
	case s.sending.Err() != nil && a.Status == 0:
		g.Release(p)
		return true, s.sending.Err()
	case a.Accepted():
		g.Passed(p)
	case passes:
		s.q.noteAnswer(a)
		s.q.refused(p, a)
	case v == client.Retry:
		s.q.noTime(a)
		g.Refused(p, a.String())
	default: // it may refuse empty writes only; if a sample is refused as well, that is all for now
		s.q.noTime(a)
		return false, nil
	}
	return true, nil
}

// testTaken tests a held target with a sample that it took before. If it takes that, the
// way is good, and what was refused are the samples.
func (s *shard) testTaken(p gate.Pass, taken point, c protocol.Choice) error {
	one := parcel{points: []point{taken}, again: true}
	a, sent, err := s.post(p, &one, parts, c)
	if err != nil || !sent {
		return err // p was given back
	}
	switch v := client.Classify(a, s.q.cfg.Policy()); {
	case v == client.Delivered:
		s.accepted(&one)
		s.q.restoreBatch()
		s.q.gate.Delivered(p)
		return nil
	case v == client.Older && a.Status/100 == 2, v == client.Suspect && a.FromDatabase():
		s.q.gate.Resume(p)
		return nil
	}
	s.q.noteAnswer(a)
	s.q.refused(p, a)
	return nil
}

// testWith sends one held sample. If it is taken it is settled and leaves the parcel.
// Without an answer p is given back.
func (s *shard) testWith(p gate.Pass, l *parcel, sample []point, c protocol.Choice) (client.Verdict, *client.Answer, error) {
	one := parcel{points: sample, again: l.again, withhold: l.withhold}
	if !carries(&s.q.cfg, wire.V1, &sample[0]) {
		c = protocol.Choice{Version: wire.V2}
	}
	a, sent, err := s.post(p, &one, parts, c)
	if err != nil || !sent {
		return client.Hold, nil, err
	}
	v := client.Classify(a, s.q.cfg.Policy())
	s.heardLate(sample, a)
	if v == client.Delivered {
		s.accepted(&one)
		s.forget(l, sample[0])
		l.tested = append(l.tested, sample[0])
	}
	return v, &a, nil
}

// heldSamples picks a sample to test with, another one each time: a bad one must not
// hold the target for ever. It is the oldest of its series that the shard has, so that
// sending it early does not break the order. When no other series waits, several were tried before, and the target is not
// known to have taken any, it also returns the one after it in its series, if the shard has that and none of them may be stored.
func (s *shard) heldSamples(l *parcel, m mode, version wire.Version) (sample, later []point) {
	const most = 256
	hands := [][]point{l.points}
	if m == patient && !l.again {
		s.mu.Lock()
		hands = append(hands, s.aside, slices.Clone(s.queue.points()))
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
		return l.points[:1:1], nil
	}
	// From both ends by turns: neighbours are likely to be bad together.
	n := int(s.q.tests.Add(1) - 1)
	i := n / 2 % len(first)
	if n%2 == 1 {
		i = len(first) - 1 - i
	}
	sample = first[i : i+1 : i+1]
	if _, taken := s.q.lastGood(); n < singleTests || len(first) > 1 || taken { // others, and a sample that was taken, are tests, too
		return sample, nil
	}
	unsure := s.unsureTo()
	for at, points := range hands {
		for _, p := range points {
			if p.kind == exemplarPoint || !carries(&s.q.cfg, version, &p) || p.series.hash != first[i].series.hash || p.seq <= first[i].seq {
				continue
			}
			if p.seq <= unsure || at == 0 && l.stored {
				return sample, nil // if it is stored, the sample before it is late, and not bad
			}
			return sample, []point{p}
		}
	}
	return sample, nil
}

const (
	// singleTests is how many times a held target is tested with single samples before a second one of
	// the same series is sent, to see whether the first is bad. That is no full contrast, so it is for a
	// target that is not known to have taken any sample, and where no other series waits.
	singleTests = 8
	// takenFrom is how many tests come before those with a sample that was taken before.
	takenFrom = 4
)

// forget takes a point that was sent on its own out of the parcel, or out of what
// comes after it.
func (s *shard) forget(l *parcel, p point) {
	for _, held := range []*[]point{&l.points, &s.aside} {
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
