package remotewrite

import (
	"slices"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/protocol"
	"hwsagent/remotewrite/wire"
	"hwsagent/wal/queue"
)

// test finds out whether a held target accepts requests again, and gives p back. Where an empty write is no evidence,
// and where samples were refused, it sends one of the waiting samples; if that is accepted, it is settled and leaves
// the parcel.
func (s *shard) test(p gate.Pass, l *parcel, m mode) error {
	g := s.q.gate
	v := g.View()
	if passes := v.EmptyPasses && !v.ByData; passes || s.q.timeUnknown() && s.mustAskTime(l) && s.q.clock.AskByEmpty() {
		if done, err := s.testByEmpty(p, passes); done || err != nil {
			return err
		}
	}
	alone := s.q.timeUnknown()
	if taken := s.q.takenBefore(); taken.exists() && m == patient {
		return s.testTaken(p, taken, s.q.proto.ChooseTest(protocol.ByTaken))
	}
	c := s.q.proto.ChooseTest(protocol.ByHeld)
	sample, later := s.heldSamples(l, m, c.Version)
	if alone {
		later = nil
	}
	verdict, a, err := s.testWith(p, l, sample, c)
	if verdict == client.Suspect && m == patient && len(later) > 0 && !a.AboutTime() {
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
		g.Resume(p) // it accepts requests; 1.0 is tried next
	case verdict == client.Discard: // on_refusal: drop holds a target for no refusal
		g.Resume(p)
	case verdict == client.Suspect && (m != patient || a.AboutTime()):
		// Either the receiver's database answered. Or the batch is being divided, which had shown that the way to the
		// receiver works: then the hold had another reason, which is gone. In both cases only this sample is refused.
		g.Resume(p)
	default:
		s.q.noteAnswer(*a)
		s.q.refused(p, *a)
	}
	return nil
}

// testPair sends the sample that follows a held one in its series, and then the held one again, which was refused just
// now. If the follower is accepted and the held sample refused again, the held sample is bad, or late by now.
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
		s.bury(sample, *refusal, queue.Rejected)
		s.forget(l, sample[0])
	}
	return client.Delivered, refusal, nil
}

// testByEmpty tests a held target with an empty write; if done, it has given p back. passes says that the target
// accepts empty writes when it is healthy.
func (s *shard) testByEmpty(p gate.Pass, passes bool) (done bool, err error) {
	a := s.q.sendEmpty(s.sending, s.q.proto.ChooseTest(protocol.ByEmpty).Version)
	if a.Version == wire.V2 && a.Status == client.StatusUnsupported {
		a = s.q.sendEmpty(s.sending, wire.V1)
	}
	g := s.q.gate
	switch v := a.Verdict; {
	case s.sending.Err() != nil && a.Status == 0:
		g.Release(p)
		return true, s.sending.Err()
	case a.Accepted():
		g.Passed(p)
	case v == client.Discard: // as in test
		g.Resume(p)
	case passes:
		s.q.noteAnswer(a)
		s.q.refused(p, a)
	case v == client.Retry:
		s.q.noTime(a)
		s.q.refused(p, a)
	default: // it may refuse only empty writes: test it with a sample, too
		s.q.noTime(a)
		return false, nil
	}
	return true, nil
}

// testTaken tests a held target with a sample that it accepted before. If it accepts that again, the way to it works,
// and the refusals were about the samples.
func (s *shard) testTaken(p gate.Pass, taken point, c protocol.Choice) error {
	one := parcel{points: []point{taken}, again: true}
	a, sent, err := s.post(p, &one, parts, c)
	if err != nil || !sent {
		return err // p was given back
	}
	switch v := a.Verdict; {
	case v == client.Delivered:
		s.accepted(&one)
		s.q.restoreBatch()
		s.q.gate.Delivered(p)
		return nil
	case v == client.Older && a.Status/100 == 2, v == client.Suspect && a.AboutTime(), v == client.Discard:
		s.q.gate.Resume(p)
		return nil
	}
	s.q.noteAnswer(a)
	s.q.refused(p, a)
	return nil
}

// testWith sends one held sample. If it is accepted, it is settled and leaves the parcel. Without an answer p is given
// back.
func (s *shard) testWith(p gate.Pass, l *parcel, sample []point, c protocol.Choice) (client.Verdict, *client.Answer, error) {
	one := parcel{points: sample, again: l.again, withhold: l.withhold}
	if !carries(&s.q.cfg, wire.V1, &sample[0]) {
		c = protocol.Choice{Version: wire.V2}
	}
	a, sent, err := s.post(p, &one, parts, c)
	if err != nil || !sent {
		return client.Hold, nil, err
	}
	v := a.Verdict
	s.heardLate(sample, a)
	if v == client.Delivered {
		s.accepted(&one)
		s.forget(l, sample[0])
		l.tested = append(l.tested, sample[0])
	}
	return v, &a, nil
}

// heldSamples picks a sample to test with, a different one each time, because a bad sample must not hold the target for
// ever. It is the oldest of its series in the shard, so that sending it early keeps the order. If only this series waits,
// several samples were tried before, and none is known to have been accepted, it also returns the series' next sample,
// unless the shard lacks that or it is in doubt.
func (s *shard) heldSamples(l *parcel, m mode, version wire.Version) (sample, later []point) {
	hands := [][]point{l.points}
	if m == patient && !l.again {
		s.mu.Lock()
		hands = append(hands, s.aside, slices.Clone(s.queue.points()))
		s.mu.Unlock()
	}
	first := s.oldest(hands, version)
	if len(first) == 0 { // only exemplars, samples that wait for the clock, or samples that version does not carry
		return l.points[:1:1], nil
	}
	// Alternate between both ends: neighbours are likely to be bad together.
	n := int(s.q.tests.Add(1) - 1)
	i := n / 2 % len(first)
	if n%2 == 1 {
		i = len(first) - 1 - i
	}
	sample = first[i : i+1 : i+1]
	if taken := s.q.lastGood(); n < singleTests || len(first) > 1 || taken.exists() { // other samples, and one that was accepted before, are tests, too
		return sample, nil
	}
	return sample, s.follower(l, hands, version, first[i])
}

// oldest returns the first sample of each series that version carries and whose time has come, in their order.
func (s *shard) oldest(hands [][]point, version wire.Version) (first []point) {
	all := 0
	for _, points := range hands {
		all += len(points)
	}
	newest := s.q.newest()
	s.seen.Clear(all)
	for _, points := range hands {
		for _, p := range points {
			if p.t <= newest && p.kind != exemplarPoint && carries(&s.q.cfg, version, &p) && s.seen.Add(p.series.hash) {
				first = append(first, p)
			}
		}
	}
	return first
}

// follower returns the sample that follows p in its series, unless that may be stored: then p is late, and not bad.
func (s *shard) follower(l *parcel, hands [][]point, version wire.Version, p point) []point {
	unsure := s.unsureTo()
	for at, points := range hands {
		for _, next := range points {
			if next.kind == exemplarPoint || !carries(&s.q.cfg, version, &next) || next.series.hash != p.series.hash || next.seq <= p.seq {
				continue
			}
			if next.seq <= unsure || at == 0 && l.stored {
				return nil
			}
			return []point{next}
		}
	}
	return nil
}

const (
	// singleTests is how many times a held target is tested with single samples before a second one of the same series
	// is sent, to see whether the first is bad. That is weaker proof than contrast, so it is limited to a target that
	// is not known to have accepted any sample, and to the case that no other series waits.
	singleTests = 8
	// takenFrom is how many tests come before the first one with a sample that was accepted before.
	takenFrom = 4
)

// forget removes a point that was sent on its own from the parcel, or from the samples behind it.
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
