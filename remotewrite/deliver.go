package remotewrite

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/wire"
	"hwsagent/wal"
)

// parcel is a batch, or a part of one, on its way to its outcomes.
type parcel struct {
	points   []point // in log order
	attempts int

	// again: the samples have their outcome; they are sent once more to see whether the
	// receiver takes them.
	again bool

	// unsure: an attempt got no final answer, so the receiver may have the samples.
	unsure bool

	refusedAt    time.Time // of the first refusal, zero before
	hasty        int       // how often the empty write after a refusal failed
	failures     int       // answers 5xx, and none while empty writes are answered
	firstFailure time.Time // of these
	denials      int       // answers 401 or 403 while empty writes pass

	// stored: the samples may be stored already. They are never sent all together; see bisect.
	stored bool

	// cleared: nothing showed that the samples were to blame when they were refused. Those of blamed were refused alone.
	cleared bool
	blamed  map[sampleKey]bool

	older      bool // try it as remote write 1.0: it was refused as 2.0
	triedOlder bool // that was done, or makes no sense
}

// The samples of a batch are tried in parts after so many failures over so long a time, or so many
// denials.
const (
	poisonFailures = 10
	poisonTime     = 5 * time.Minute
	poisonDenials  = 3
)

// stuck reports whether the batch itself may be what the receiver fails at.
func (l *parcel) stuck(now time.Time) bool {
	return l.failures >= poisonFailures && now.Sub(l.firstFailure) >= poisonTime || l.denials >= poisonDenials
}

// fate is what try found out.
type fate uint8

const (
	settled  fate = iota // every sample has its outcome
	refused              // the receiver refuses these samples; the way to it is good
	tooLarge             // 413
	stuck                // see parcel.stuck
	failed               // once only: a failure that need not be the samples' fault
)

// mode says how far try goes.
type mode uint8

const (
	// patient: try again without end; find out whether a refusal means the samples.
	patient mode = iota
	// parts of a refused batch: a refusal is a refusal; else as patient.
	parts
	// once, for the parts of a stuck batch: failures and denials are answers.
	once
)

// deliver brings every sample of the parcel to its outcome. The error is ctx's.
func (s *shard) deliver(ctx context.Context, l *parcel) error {
	for len(l.points) > 0 {
		if l.stored {
			if err := s.awaitOpen(ctx, l); err != nil {
				return err
			}
			if err := s.bisect(ctx, l, client.Answer{}, nil); err != nil {
				return err
			}
			continue
		}
		f, a, err := s.try(ctx, l, patient)
		switch {
		case err != nil:
			return err
		case f == settled:
			if l.cleared {
				s.q.distrust()
			}
			return nil
		case f == tooLarge && len(l.points) > 1:
			return s.halve(ctx, l)
		case f == refused && s.q.behind:
			return s.refusedBehind(ctx, l, a)
		case f == stuck && s.q.guardsLate() && saysLate(a): // Prometheus 2 answers 500 to what is beyond its window
			return errAllLate
		case f == stuck:
			s.q.log.Warn("A batch fails again and again; trying its parts", slog.String("answer", a.String()), slog.Int("samples", len(l.points)))
		}
		first := replyOf(f, a, l.unsure && !s.q.behind, 0, s.q.kind())
		if err := s.bisect(ctx, l, a, &first); err != nil {
			return err
		}
		*l = parcel{points: l.points, attempts: l.attempts, stored: l.stored, unsure: l.stored, cleared: f == refused, blamed: l.blamed}
		if f == stuck && !l.stored {
			l.points = s.topUp(l.points)
		}
	}
	return nil
}

// halve remembers that so many samples are too many, and delivers the first half of the
// parcel; the second goes back to the front of the queue.
func (s *shard) halve(ctx context.Context, l *parcel) error {
	n := len(l.points)
	s.q.shrinkBatch(n)
	s.putBack(l.points[n/2:], l.unsure)
	return s.deliver(ctx, &parcel{points: l.points[:n/2], stored: l.unsure && !s.q.behind})
}

// try sends the parcel until something is known about its samples. On settled they have
// their outcomes; otherwise l.points are those that have not. The answer is the last.
// The error is ctx's, or errHeld: so ends a part of a refused batch, too, while the target is held
// because it refuses samples.
func (s *shard) try(ctx context.Context, l *parcel, m mode) (fate, client.Answer, error) {
	for {
		c := s.q.choose(l)
		lim, known := s.q.limits()
		if s.expire(l, c.version, lim) {
			return 0, client.Answer{}, errAhead
		}
		if len(l.points) == 0 {
			return settled, client.Answer{}, nil
		}
		p, err := s.q.enter(ctx)
		if err != nil {
			return 0, client.Answer{}, err
		}
		if _, knownNow := s.q.limits(); s.q.choose(l) != c || knownNow && !known { // since then
			s.q.gate.release(p)
			continue
		}
		if p.test && m != patient && s.q.gate.view().byData {
			s.q.gate.release(p)
			return 0, client.Answer{}, errHeld
		}
		if p.test {
			if err := s.test(p, l, m); err != nil {
				return 0, client.Answer{}, err
			}
			continue
		}
		if asked, err := s.learnTime(ctx, p, l); err != nil {
			return 0, client.Answer{}, err
		} else if asked {
			continue
		}
		clockWasKnown := s.q.clock.Load() != nil
		a, sent, err := s.post(p, l, c)
		if err != nil {
			return 0, a, err
		}
		if !sent {
			continue
		}
		if s.refusedForTime(p, l, a, clockWasKnown) {
			continue // see expire
		}
		if f, known := s.judge(p, l, a, m, c); known {
			return f, a, nil
		}
	}
}

// post sends the parcel once. When it was not sent, or when s.sending has ended, which is
// the error, p is given back.
func (s *shard) post(p pass, l *parcel, c choice) (_ client.Answer, sent bool, _ error) {
	newest := uint64(0)
	for i := range l.points {
		newest = max(newest, l.points[i].seq)
	}
	if err := s.w.reserve(newest); err != nil {
		s.q.gate.failed(p, err.Error(), 0, false)
		s.q.note(err.Error())
		return client.Answer{}, false, nil
	}
	n, exemplars := count(l.points), 0
	s.body, exemplars = s.q.encoders.body(s.body[:0], c.version, l.points, s.q.order())
	n[classExemplar] = exemplars
	s.q.metrics.Sending(n, len(s.body), l.attempts > 0)
	if l.attempts > 0 {
		s.q.retries.Add(1)
	}
	began := time.Now()
	a := s.q.send(s.sending, client.Request{Body: s.body, Version: c.version, Samples: n[classSample] + n[classHistogram], Attempt: l.attempts})
	s.q.took(time.Since(began))
	l.attempts++
	v := client.Classify(a, config.Policy{RetryOnRateLimit: true})
	if v != client.Hold && v != client.Split && a.Status != client.StatusUnsupported {
		s.w.mayHave(newest)
	}
	s.q.learnVersion(c, a, v)
	if v == client.Delivered && a.Version == wire.V2 {
		s.q.sawWritten(a, exemplars)
	}
	if s.sending.Err() != nil && a.Status == 0 {
		s.q.gate.release(p)
		return a, true, s.sending.Err()
	}
	return a, true, nil
}

// judge gives p back with what the answer says about the target, and returns what it
// says about its samples, if it does.
func (s *shard) judge(p pass, l *parcel, a client.Answer, m mode, c choice) (f fate, known bool) {
	g := s.q.gate
	v := client.Classify(a, s.q.cfg.Policy())
	if v != client.Delivered {
		s.q.noteAnswer(a)
	}
	if c.version == wire.V2 || c.trial {
		if f, known, done := s.judgeVersion(p, l, a, m, c); done {
			return f, known
		}
	}
	switch v {
	case client.Delivered:
		s.accepted(l)
		g.delivered(p)
		return settled, true
	case client.Discard:
		g.release(p)
		if m != patient || s.q.guardsLate() {
			return refused, true
		}
		s.discard(l.points, a)
		return settled, true
	case client.Split:
		g.release(p)
		return tooLarge, true
	case client.Suspect:
		s.heardLate(l.points, a)
		if m != patient {
			// What was refused while another request found out that the target refuses
			// everything proves nothing.
			before := g.current(p)
			g.release(p)
			return refused, before
		}
		return refused, s.refusalIsReal(p, l, a, c.version)
	case client.Hold:
		if m == once && a.Denied() {
			g.failed(p, a.String(), 0, true)
			return failed, true
		}
		if a.Denied() && g.view().emptyPassedSince {
			l.denials++
		}
		s.q.refused(p, a)
	case client.Retry:
		l.unsure = true
		s.q.failed(p, a)
		if a.Status >= 500 || a.Status == http.StatusTooManyRequests {
			s.q.slowDown()
		}
		if a.Status >= 500 || a.Status == 0 && (m == once || g.view().emptyAnswered) {
			if l.failures++; l.failures == 1 {
				l.firstFailure = time.Now()
			}
			if m == once {
				return failed, true
			}
		}
	}
	return stuck, m != once && l.stuck(time.Now())
}

// accepted gives the samples of a parcel their outcome after a 2xx.
func (s *shard) accepted(l *parcel) {
	if p := l.points[len(l.points)-1]; !l.again && carries(&s.q.cfg, wire.V1, &p) { // it may be sent as either
		s.good, s.hasGood = p, true
		if !s.q.behind && p.kind != exemplarPoint {
			s.q.sawGood(p)
		}
	}
	s.q.delivered(l.points)
	s.q.show(l.points)
	if s.q.behind {
		s.q.pauses.ease(0)
	}
	if !l.again {
		s.w.noteTaken(l.points)
		s.w.settleAll(l.points, wal.Outcome{Delivered: 1})
	}
}

// refusalIsReal finds out whether a refusal means the samples or the way to the
// receiver is broken: a proxy answers a missing client certificate with 400, too. It
// gives p back. False means that the target is held now, or that something has changed
// meanwhile, and the parcel must be tried again. version is that of the empty write.
func (s *shard) refusalIsReal(p pass, l *parcel, a client.Answer, version wire.Version) bool {
	g := s.q.gate
	if !g.current(p) {
		g.release(p)
		return false
	}
	if fromDatabase(a) { // the receiver's database speaks
		g.release(p)
		return true
	}
	if l.hasty > 0 { // it may have failed because it came so soon
		if err := sleep(s.sending, g.pause()); err != nil || !g.current(p) {
			g.release(p)
			return false
		}
	}
	e := s.q.emptyAgain(s.sending, version)
	if l.hasty >= maxHasty && e.RetryAfter == 0 && client.Classify(e, config.Policy{RetryOnRateLimit: true}) == client.Retry {
		// Perhaps each second request fails, as with one of two receivers down, and this was that.
		e = s.q.sendEmpty(s.sending, version)
	}
	if e.Status == client.StatusUnsupported && version == wire.V1 && a.Version == wire.V2 && a.Status != client.StatusUnsupported {
		l.triedOlder = true // 1.0 is not what it takes instead
		e = s.q.sendEmpty(s.sending, wire.V2)
	}
	if e.Accepted() {
		g.sawEmptyPass()
		g.release(p)
		return true
	}
	if !g.view().emptyPasses && s.tookDataSince(l) {
		// This receiver refuses empty writes, and takes data.
		g.release(p)
		return true
	}
	if l.refusedAt.IsZero() {
		l.refusedAt = time.Now()
	}
	if client.Classify(e, config.Policy{RetryOnRateLimit: true}) == client.Retry {
		l.hasty++
		g.failed(p, e.String(), e.RetryAfter, e.Status != 0)
	} else {
		s.q.refused(p, a)
	}
	return false
}

// heardLate notes that the receiver's database refused a sample alone as late: it will do so again, as long
// as the way to it is good.
func (s *shard) heardLate(points []point, a client.Answer) {
	if len(points) == 1 && fromDatabase(a) {
		s.late, s.hasLate = points[0], true
		if !s.q.behind {
			s.q.noteLate(points[0])
		}
	}
}

// tookDataSince reports whether the target takes data although it refused these samples:
// it has taken some since, or a moment ago.
func (s *shard) tookDataSince(l *parcel) bool {
	return !l.refusedAt.IsZero() && s.q.deliveredSince(l.refusedAt) ||
		!l.again && s.q.deliveredSince(time.Now().Add(-moment))
}

// maxHasty is how often the empty write after a refusal may fail before a second one is sent at once.
const maxHasty = 5

// expire settles the samples of the parcel that are older than lim allows, or ahead of the receiver's
// clock and of this host's, or that the version does not carry. It reports whether others have to wait
// for the receiver's clock.
func (s *shard) expire(l *parcel, version wire.Version, lim limits) (ahead bool) {
	if l.again {
		return false // they have their outcome
	}
	bad := 0
	for i := range l.points {
		if p := &l.points[i]; p.t < lim.oldest || p.t > lim.newest || p.kind != float && !carries(&s.q.cfg, version, p) {
			bad++
			ahead = ahead || p.t > lim.newest && p.t <= lim.future && p.kind != exemplarPoint
		}
	}
	if bad == 0 || ahead {
		return ahead
	}
	kept := l.points[:0]
	for i := range l.points {
		p := l.points[i]
		switch {
		case p.kind == exemplarPoint:
			kept = append(kept, p)
		case p.t < lim.oldest:
			s.w.settle(p.seq, one(wal.TooOld))
		case p.t > lim.future:
			s.w.settle(p.seq, one(wal.Future))
		case !carries(&s.q.cfg, version, &p):
			s.w.settle(p.seq, one(wal.Unsupported))
		default:
			kept = append(kept, p)
		}
	}
	l.points = kept
	return false
}
