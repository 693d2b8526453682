package remotewrite

import (
	"net/http"
	"slices"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/protocol"
	"hwsagent/remotewrite/wire"
	"hwsagent/wal/queue"
)

// judge gives p back according to the answer. If the answer decides the fate of the samples, known is true.
func (s *shard) judge(p gate.Pass, l *parcel, a client.Answer, c protocol.Choice) (f fate, known bool) {
	g := s.lane.gate
	if a.Verdict == client.Plain {
		s.judgePlain(p, l, a)
		return 0, false
	}
	if a.Verdict != client.Delivered {
		s.lane.noteAnswer(a)
	}
	if s.lane.proto.Newer() && s.judgeVersion(p, l, a, c) {
		return 0, false
	}
	if (a.Verdict == client.Suspect || a.Verdict == client.Discard) && s.lane.outOfTime(l) {
		g.Release(p)
		return 0, false // the answer's Date shows that some of the samples are not to be sent
	}
	s.judgeZstd(l, a)
	l.unsure = l.unsure || a.WrotePart()
	switch s.verdict(l, a) {
	case client.Delivered:
		s.accepted(l)
		g.Delivered(p)
		return settled, true
	case client.Discard:
		if l.role != asBatch {
			g.Release(p)
			return refused, true
		}
		g.Delivered(p) // the samples are not sent again: no trouble is left
		s.discard(l.points, a)
		return settled, true
	case client.Split:
		if len(l.points) == 1 && !s.lane.drops() && s.lane.facts.Contradictory(time.Now()) {
			return s.failsAs(p, l, a)
		}
		g.Release(p)
		return tooLarge, true
	case client.Suspect:
		return s.judgeRefusal(p, l, a)
	case client.Hold:
		if s.denied(p, l, a) {
			return failed, true
		}
	case client.Retry:
		switch {
		case s.failedAt(p, l, a):
			return failed, true
		case l.role == asBatch && l.blame.busy >= mostBusy && len(l.points) >= leastBusy:
			return busy, true
		}
	}
	return stuck, l.role == asBatch && l.blame.stuck()
}

// verdict is the answer's verdict on this parcel.
func (s *shard) verdict(l *parcel, a client.Answer) client.Verdict {
	switch {
	case a.Verdict == client.Suspect && (a.WroteAll() || l.role == asControl && a.Status/100 == 2):
		return client.Delivered // it refused exemplars or metadata; or it wrote nothing because it has the sample
	case a.Verdict == client.Older && s.lane.drops() && a.Status/100 == 4: // it takes neither version
		return client.Discard
	case a.Verdict == client.Older:
		return client.Hold
	}
	return a.Verdict
}

// judgeRefusal gives p back after a refusal of the samples.
func (s *shard) judgeRefusal(p gate.Pass, l *parcel, a client.Answer) (f fate, known bool) {
	if refusedAsAhead(l.points, a) {
		s.lane.holdForClock(p, l.points, a)
		return 0, false
	}
	if s.heardLate(l.points, a); !a.AboutTime() && !s.lane.drops() && s.lane.facts.Contradictory(time.Now()) {
		return s.failsAs(p, l, a)
	}
	// If another request has found out meanwhile that the target refuses everything, this refusal shows nothing.
	current := s.lane.gate.Current(p)
	s.lane.gate.Release(p)
	return refused, current
}

// failsAs gives p back after a refusal that counts as a failure, because the target is contradictory.
func (s *shard) failsAs(p gate.Pass, l *parcel, a client.Answer) (f fate, known bool) {
	l.blame.failures++
	s.lane.gate.Failed(p, a.Why(), 0, true)
	if l.role != asBatch {
		return failed, true
	}
	return stuck, l.blame.stuck()
}

// denied gives p back after an answer that holds the target, and reports whether it counts as one about the samples: while a
// batch is divided, the control shows whether it is. A batch that was denied too often is divided, so it does not hold the target.
func (s *shard) denied(p gate.Pass, l *parcel, a client.Answer) bool {
	if l.role == asPart {
		s.lane.gate.Failed(p, a.Why(), 0, true)
		return true
	}
	if !l.blame.deniedAt.IsZero() && s.lane.deliveredSince(l.blame.deniedAt) {
		l.blame.denials++
	}
	l.blame.deniedAt = time.Now()
	if l.role == asBatch && l.blame.stuck() {
		s.lane.gate.Release(p)
		return false
	}
	s.lane.refused(p, a)
	return l.role != asBatch
}

// failedAt gives p back after a failure that may pass, and reports whether it counts as an answer about the samples.
func (s *shard) failedAt(p gate.Pass, l *parcel, a client.Answer) bool {
	l.unsure = true
	s.lane.failed(p, a)
	if a.Status >= 500 || a.Status == http.StatusTooManyRequests {
		s.lane.slowDown()
	}
	if first := slices.IndexFunc(l.points, func(p point) bool { return p.kind != exemplarPoint }); first >= 0 {
		s.lane.setLast(&s.lane.tried, l.points[first])
	}
	if l.blame.busy++; a.Status != http.StatusTooManyRequests {
		l.blame.busy = 0
	}
	if !mayBlame(a) {
		return false
	}
	l.blame.failures++
	s.lane.failsAsNewer(l, a)
	return l.role != asBatch
}

// mayBlame reports whether a failure may be due to the samples of the request: a 5xx, or a connection that ended, or gave no answer in
// time, after the request was sent. 503, 429 and an answer with Retry-After are about the receiver's state.
func mayBlame(a client.Answer) bool {
	switch {
	case a.RetryAfter != 0, a.Reason == client.ReasonPartlyDown, a.Status == http.StatusServiceUnavailable:
		return false
	case a.Status == 0:
		return a.Failure.Kind == client.Cut || a.Failure.Kind == client.Timeout
	}
	return a.Status >= 500
}

// accepted settles the samples of a parcel after a 2xx, unless they have their outcome.
func (s *shard) accepted(l *parcel) {
	last := len(l.points) - 1
	for last >= 0 && l.points[last].kind == exemplarPoint { // without its sample it would be an empty write in 2.0
		last--
	}
	if last >= 0 && l.role != asControl && carries(&s.lane.cfg, wire.V1, &l.points[last]) { // either version can carry it
		s.good = l.points[last]
		if !s.lane.behind {
			s.lane.setLast(&s.lane.good, s.good)
		}
	}
	l.taken = true
	s.lane.delivered(l.points)
	s.lane.facts.Took(len(l.points))
	s.lane.show(l.points)
	if s.lane.behind {
		s.lane.pauses.Ease(0)
	}
	if l.role != asControl {
		s.settleDelivered(l.points)
	}
}

func (s *shard) settleDelivered(points []point) {
	for i := range points {
		r := points[i].series
		if !r.taken && r.late {
			s.lane.facts.TookNew()
		}
		r.taken, r.rejected = true, 0
	}
	s.w.settleAll(points, queue.Outcome{Delivered: 1})
}

// heardLate records a sample that the receiver's database refused alone as late. The database will refuse it again, as
// long as the way to it works.
func (s *shard) heardLate(points []point, a client.Answer) {
	if len(points) == 1 && a.AboutTime() {
		s.late = points[0]
		if !s.lane.behind {
			s.lane.setLast(&s.lane.refusedAsLate, s.late)
		}
	}
}
