package remotewrite

import (
	"slices"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/protocol"
	"hwsagent/remotewrite/wire"
)

// takenFrom is how many tests of a held target come before the first one with a sample that it accepted before. From then on
// each second test uses that: the waiting samples may all be bad, or late because the clock was set back.
const takenFrom = 4

// takesOlder says why 1.0 is in use after a test.
const takesOlder = "takes as remote write 1.0 what it did not take as 2.0"

// test finds out whether a held target accepts samples again, and gives p back. It sends one sample alone. A waiting
// sample that is accepted is settled and leaves the parcel. The error is s.sending's.
func (s *shard) test(p gate.Pass, l *parcel) error {
	g := s.lane.gate
	if ahead := s.lane.last(&s.lane.ahead); ahead.exists() {
		return s.testAhead(p, ahead)
	}
	n := int(s.lane.tests.Add(1) - 1)
	one := parcel{role: asPart}
	if good := s.lane.lastGood(); good.exists() && n >= takenFrom && n%2 == 1 {
		one.points, one.role = []point{good}, asControl
	} else {
		one.points = s.heldSample(l, n)
	}
	byData := g.View().ByData
	c := s.lane.chooseTest(&one, n, byData)
	a, sent, err := s.post(p, &one, c)
	if err != nil || !sent {
		return err // p was given back
	}
	s.heardLate(one.points, a)
	switch {
	case a.Verdict == client.Delivered:
		s.accepted(&one)
		if one.role != asControl {
			s.forget(l, one.points[0])
			l.gone = append(l.gone, one.points[0])
		}
		if byData {
			s.lane.restoreBatch()
		}
		if c.Once {
			s.lane.fallBack(takesOlder)
		} else if c.Version == wire.V2 {
			s.lane.confirm()
		}
		g.Delivered(p)
	case a.Verdict == client.Older && l.older.stage == untried:
		l.unsure = l.unsure || a.Status/100 == 2
		g.Resume(p) // it accepts requests; 1.0 is tried next
	case a.Verdict == client.Discard, a.AboutTime(): // with on_refusal: drop no refusal holds it; or its database answered
		g.Resume(p)
	case refusedAsAhead(one.points, a):
		s.lane.holdForClock(p, one.points, a)
	default:
		s.lane.noteAnswer(a)
		s.lane.refused(p, a)
	}
	return nil
}

// chooseTest returns the version of test number n of a held target: the one in use, and by turns 1.0 if the target refuses all samples or has
// not confirmed 2.0, because it may refuse that as everything that it cannot read.
func (q *Queue) chooseTest(one *parcel, n int, byData bool) protocol.Choice {
	c := q.choose(one)
	if c.Version == wire.V2 && n/2%2 == 1 && (byData || !q.proto.IsConfirmed()) && q.allCarried(one.points) {
		return protocol.Choice{Version: wire.V1, Once: true}
	}
	return c
}

// heldSample picks the sample of test number n, of a different series each time, because a bad sample must not hold the target
// for ever. It is the oldest of its series in the shard, so that sending it early keeps the order.
func (s *shard) heldSample(l *parcel, n int) []point {
	hands := [][]point{l.points}
	if l.role != asControl {
		s.mu.Lock()
		hands = append(hands, slices.Clone(s.queue.points()))
		s.mu.Unlock()
	}
	first := s.oldest(hands)
	if len(first) == 0 { // only exemplars
		return l.points[:1:1]
	}
	// Alternate between both ends: neighbours are likely to be bad together.
	i := n / 2 % len(first)
	if n%2 == 1 {
		i = len(first) - 1 - i
	}
	return first[i : i+1 : i+1]
}

// oldest returns the first sample of each series, in their order.
func (s *shard) oldest(hands [][]point) (first []point) {
	clear(s.seen)
	for _, points := range hands {
		for _, p := range points {
			if _, again := s.seen[p.series.hash]; !again && p.kind != exemplarPoint {
				s.seen[p.series.hash] = struct{}{}
				first = append(first, p)
			}
		}
	}
	return first
}

// forget removes a point that was sent on its own from the parcel, or from the samples behind it. The exemplars of a sample were not sent
// with it: they are counted, and lost.
func (s *shard) forget(l *parcel, p point) {
	if i := slices.IndexFunc(l.points, p.same); i >= 0 {
		end := withExemplars(l.points, i+1)
		l.points = slices.Delete(l.points, i, end)
		s.lane.lostExemplars(end - i - 1)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.queue.points(), p.same); i >= 0 {
		end := withExemplars(s.queue.points(), i+1)
		s.queue.remove(i, end)
		s.lane.lostExemplars(end - i - 1)
	}
}
