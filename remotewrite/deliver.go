package remotewrite

import (
	"context"
	"log/slog"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/clock"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/givenup"
	"hwsagent/remotewrite/metrics"
	"hwsagent/remotewrite/protocol"
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

	// withhold: if they are taken, they do not have their outcome yet.
	withhold bool

	tested []point // were taken alone, as tests of a held target

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
	blamed  map[givenup.Key]bool

	apart standsApart // why the samples are sent after the others of their batch

	squeezed client.Answer // to an attempt with zstd that was not taken; zero if there was none

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
			if err := s.deliverDoubted(ctx, l); err != nil {
				return err
			}
			continue
		}
		f, a, err := s.try(ctx, l, patient)
		if err != nil {
			return err
		}
		if done, err := s.whole(ctx, l, f, a); err != nil || done {
			return err
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

// deliverDoubted tries samples that may be stored already.
func (s *shard) deliverDoubted(ctx context.Context, l *parcel) error {
	if err := s.awaitOpen(ctx, l); err != nil {
		return err
	}
	if err := s.tryDoubted(ctx, l); err != nil {
		return err
	}
	return s.bisect(ctx, l, client.Answer{}, nil)
}

// whole acts on the fate of a whole parcel. done says that nothing of it is left to deliver here; else the parcel is to be
// bisected.
func (s *shard) whole(ctx context.Context, l *parcel, f fate, a client.Answer) (done bool, err error) {
	if f == refused && l.apart == newcomer {
		if done, err := s.tryNewcomers(ctx, l, a); err != nil || done {
			return true, err
		}
	}
	switch {
	case f == settled:
		if l.cleared {
			s.q.distrust()
		}
		return true, nil
	case f == tooLarge && len(l.points) > 1:
		return true, s.halve(ctx, l)
	case f == refused && s.q.behind:
		return true, s.refusedBehind(ctx, l, a)
	case f == stuck && s.q.guardsLate() && a.SaysLate(): // Prometheus 2 answers 500 to samples older than its out-of-order window
		return true, errAllLate
	case f == stuck:
		s.q.log.Warn("A batch fails again and again; trying its parts", slog.String("answer", a.String()), slog.Int("samples", len(l.points)))
	}
	return false, nil
}

// halve remembers that so many samples are too many, and delivers the first half of the
// parcel; the second goes back to the front of the queue. Samples that may be stored stay together: the later ones show
// whether the earlier ones are.
func (s *shard) halve(ctx context.Context, l *parcel) error {
	n := len(l.points)
	s.q.shrinkBatch(n)
	if l.unsure && !s.q.behind {
		return s.deliver(ctx, &parcel{points: l.points, stored: true})
	}
	s.putBack(l.points[n/2:])
	return s.deliver(ctx, &parcel{points: l.points[:n/2]})
}

// try sends the parcel until something is known about its samples. On settled they have
// their outcomes; otherwise l.points are those that have not. The answer is the last.
// The error is ctx's, or errHeld: so ends a part of a refused batch, too, while the target is held
// because it refuses samples.
func (s *shard) try(ctx context.Context, l *parcel, m mode) (fate, client.Answer, error) {
	for {
		c := s.q.choose(l)
		lim, known := s.q.limits()
		if s.expire(l, c.Version, lim) {
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
			s.q.gate.Release(p)
			continue
		}
		if done, err := s.testFirst(ctx, p, l, m); err != nil {
			return 0, client.Answer{}, err
		} else if done {
			continue
		}
		clockWasKnown := s.q.clock.Known()
		a, sent, err := s.post(p, l, m, c)
		if err != nil {
			return 0, a, err
		}
		if !sent || s.refusedForTime(p, l, a, clockWasKnown) { // see expire
			continue
		}
		if f, known := s.judge(p, l, a, m, c); known {
			return f, a, nil
		}
	}
}

// testFirst uses p for what has to be known before the parcel is sent: whether a held target takes requests again, and the
// receiver's clock. It reports whether it did, and gave p back. The error is ctx's, or errHeld.
func (s *shard) testFirst(ctx context.Context, p gate.Pass, l *parcel, m mode) (done bool, err error) {
	switch {
	case p.Test && m != patient && s.q.gate.View().ByData:
		s.q.gate.Release(p)
		return false, errHeld
	case p.Test:
		return true, s.test(p, l, m)
	}
	return s.learnTime(ctx, p, l)
}

// post sends the parcel once. When it was not sent, or when s.sending has ended, which is
// the error, p is given back.
func (s *shard) post(p gate.Pass, l *parcel, m mode, c protocol.Choice) (_ client.Answer, sent bool, _ error) {
	newest := uint64(0)
	for i := range l.points {
		newest = max(newest, l.points[i].seq)
	}
	if err := s.w.reserve(newest); err != nil {
		s.q.gate.Failed(p, err.Error(), 0, false)
		s.q.note(err.Error())
		return client.Answer{}, false, nil
	}
	n, exemplars := count(l.points), 0
	by := s.compression(l, m, c)
	s.body, exemplars = s.q.encoders.body(s.body[:0], c.Version, by, l.points, s.q.order())
	n[metrics.Exemplars] = exemplars
	s.q.metrics.Sending(n, len(s.body), l.attempts > 0)
	if l.attempts > 0 {
		s.q.retries.Add(1)
	}
	began := time.Now()
	a := s.q.send(s.sending, client.Request{Body: s.body, Version: c.Version, Compression: by, Samples: n[metrics.Samples] + n[metrics.Histograms], Attempt: l.attempts})
	s.q.took(time.Since(began))
	l.attempts++
	v := client.Classify(a, config.Policy{RetryOnRateLimit: true})
	if v != client.Hold && v != client.Split && a.Status != client.StatusUnsupported {
		s.w.mayHave(newest)
	}
	if by == wire.Zstd && v != client.Delivered {
		l.squeezed = a
	}
	if v != client.Plain { // which says nothing of the version
		s.q.learnVersion(c, a, v)
	}
	if v == client.Delivered && a.Version == wire.V2 {
		s.q.sawWritten(a, exemplars)
	}
	if s.sending.Err() != nil && a.Status == 0 {
		s.q.gate.Release(p)
		return a, true, s.sending.Err()
	}
	return a, true, nil
}

// expire settles the samples of the parcel that are older than lim allows, or ahead of the receiver's
// clock and of this host's, or that the version does not carry. It reports whether others have to wait
// for the receiver's clock.
func (s *shard) expire(l *parcel, version wire.Version, lim clock.Limits) (ahead bool) {
	if l.again {
		return false // they have their outcome
	}
	bad := 0
	for i := range l.points {
		if p := &l.points[i]; !lim.Sends(p.t) || p.kind != float && !carries(&s.q.cfg, version, p) {
			bad++
			ahead = ahead || lim.Waits(p.t) && p.kind != exemplarPoint
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
		case p.t < lim.Oldest:
			s.w.settle(p.seq, one(wal.TooOld))
		case p.t > lim.Future:
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
