package remotewrite

import (
	"net/http"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/pace"
	"hwsagent/remotewrite/protocol"
	"hwsagent/remotewrite/wire"
	"hwsagent/wal/queue"
)

// judge gives p back according to the answer. If the answer decides the fate of the samples, known is true.
func (s *shard) judge(p gate.Pass, l *parcel, a client.Answer, m mode, c protocol.Choice) (f fate, known bool) {
	g := s.q.gate
	v := a.Verdict
	if v == client.Plain {
		s.judgePlain(p, l, a)
		return 0, false
	}
	if v != client.Delivered {
		s.q.noteAnswer(a)
	}
	if c.Version == wire.V2 || c.Trial {
		if delivered, done := s.judgeVersion(p, l, a, m, c); done {
			return settled, delivered
		}
	}
	switch v {
	case client.Delivered:
		if l.squeezed.Compression == wire.Zstd {
			s.q.passedPlain(l.squeezed)
		}
		s.accepted(l)
		g.Delivered(p)
		return settled, true
	case client.Discard:
		if m != patient || s.q.guardsLate() {
			g.Release(p)
			return refused, true
		}
		g.Delivered(p) // the samples are not sent again: no trouble is left
		s.discard(l.points, a)
		return settled, true
	case client.Split:
		g.Release(p)
		return tooLarge, true
	case client.Suspect:
		s.heardLate(l.points, a)
		if m != patient {
			// If another request has found out meanwhile that the target refuses everything, this refusal proves
			// nothing.
			before := g.Current(p)
			g.Release(p)
			return refused, before
		}
		return refused, s.refusalIsReal(p, l, a, c.Version)
	case client.Hold:
		if s.denied(p, l, a, m) {
			return failed, true
		}
	case client.Retry:
		if s.failedAt(p, l, a, m) {
			return failed, true
		}
	}
	return stuck, m != once && l.stuck(time.Now())
}

// denied gives p back after an answer that holds the target, and reports whether it counts as one about the samples.
func (s *shard) denied(p gate.Pass, l *parcel, a client.Answer, m mode) bool {
	if m == once && a.Denied() {
		s.q.gate.Failed(p, a.Why(), 0, true)
		return true
	}
	if a.Denied() {
		if s.q.gate.View().EmptyPassedSince || !l.deniedAt.IsZero() && s.q.deliveredSince(l.deniedAt) {
			l.denials++
		}
		l.deniedAt = time.Now()
	}
	s.q.refused(p, a)
	return false
}

// failedAt gives p back after a failure that may pass, and reports whether it counts as an answer about the samples.
func (s *shard) failedAt(p gate.Pass, l *parcel, a client.Answer, m mode) bool {
	l.unsure = true
	s.q.failed(p, a)
	if a.Status >= 500 || a.Status == http.StatusTooManyRequests {
		s.q.slowDown()
	}
	if a.Status >= 500 || a.Status == 0 && (m == once || s.q.gate.View().EmptyAnswered) {
		if l.failures++; l.failures == 1 {
			l.firstFailure = time.Now()
		}
		return m == once
	}
	return false
}

// accepted settles the samples of a parcel after a 2xx, unless they have their outcome or it is withheld.
func (s *shard) accepted(l *parcel) {
	last := len(l.points) - 1
	for last >= 0 && l.points[last].kind == exemplarPoint { // without its sample it would be an empty write in 2.0
		last--
	}
	if last >= 0 && !l.again && carries(&s.q.cfg, wire.V1, &l.points[last]) { // either version can carry it
		s.good = l.points[last]
		if !s.q.behind {
			s.q.setLast(&s.q.good, s.good)
		}
	}
	s.q.delivered(l.points, true)
	s.q.show(l.points)
	if s.q.behind {
		s.q.pauses.Ease(0)
	}
	if !l.again && !l.withhold {
		s.q.refusedLate.Store(false) // of the backlog: it is accepted again
		s.settleDelivered(l.points)
	}
}

func (s *shard) settleDelivered(points []point) {
	s.noteTaken(points)
	s.w.settleAll(points, queue.Outcome{Delivered: 1})
}

// refusalIsReal finds out whether a refusal is about the samples, or the way to the receiver is broken: a proxy also
// answers a missing client certificate with 400. It gives p back. False means that the target is held now, or that
// something has changed meanwhile, and the parcel must be tried again. version is that of the empty write.
func (s *shard) refusalIsReal(p gate.Pass, l *parcel, a client.Answer, version wire.Version) bool {
	g := s.q.gate
	if !g.Current(p) {
		g.Release(p)
		return false
	}
	if a.AboutTime() { // the receiver's database answered
		g.Release(p)
		return true
	}
	if l.hasty > 0 { // the last empty write may have failed because it came too soon
		if err := pace.Sleep(s.sending, g.Pause()); err != nil || !g.Current(p) {
			g.Release(p)
			return false
		}
	}
	e := s.q.emptyAgain(s.sending, version)
	if l.hasty >= maxHasty && e.RetryAfter == 0 && e.Verdict == client.Retry {
		// Perhaps every second request fails, as with one of two receivers down, and this was one of them.
		e = s.q.sendEmpty(s.sending, version)
	}
	if e.Status == client.StatusUnsupported && version == wire.V1 && a.Version == wire.V2 && a.Status != client.StatusUnsupported {
		l.triedOlder = true // the target does not accept 1.0
		e = s.q.sendEmpty(s.sending, wire.V2)
	}
	if e.Accepted() {
		g.SawEmptyPass()
	}
	if e.Accepted() || !g.View().EmptyPasses && s.tookDataSince(l) { // a receiver may refuse empty writes, and accept data
		g.Release(p)
		return true
	}
	if l.refusedAt.IsZero() {
		l.refusedAt = time.Now()
	}
	if e.Verdict == client.Retry {
		l.hasty++
		g.Failed(p, e.Why(), e.RetryAfter, e.Status != 0)
	} else {
		s.q.refused(p, a)
	}
	return false
}

// heardLate records a sample that the receiver's database refused alone as late. The database will refuse it again, as
// long as the way to it works.
func (s *shard) heardLate(points []point, a client.Answer) {
	if len(points) == 1 && a.AboutTime() {
		s.late = points[0]
		if !s.q.behind {
			s.q.setLast(&s.q.refusedAsLate, s.late)
		}
	}
}

// tookDataSince reports whether the target accepts data although it refused these samples: it has accepted some since
// the first refusal, or a moment ago.
func (s *shard) tookDataSince(l *parcel) bool {
	return !l.refusedAt.IsZero() && s.q.deliveredSince(l.refusedAt) ||
		!l.again && s.q.deliveredSince(time.Now().Add(-moment))
}

// maxHasty is how often the empty write after a refusal may fail before a second one is sent at once.
const maxHasty = 5
