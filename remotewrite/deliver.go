package remotewrite

import (
	"context"
	"log/slog"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/clock"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/givenup"
	"hwsagent/remotewrite/metrics"
	"hwsagent/remotewrite/protocol"
	"hwsagent/remotewrite/wire"
	"hwsagent/wal/queue"
)

// parcel is a batch, or a part of one, until its samples have their outcomes.
type parcel struct {
	points   []point // in log order
	attempts int

	// again: the samples already have their outcome; they are sent again to see whether the receiver accepts them.
	again bool

	// withhold: if the samples are accepted, they do not get their outcome yet.
	withhold bool

	tested []point // accepted alone, as tests of a held target

	// unsure: an attempt got no final answer, so the receiver may have the samples.
	unsure bool

	refusedAt    time.Time // time of the first refusal; zero before it
	hasty        int       // how often the empty write after a refusal failed
	failures     int       // 5xx answers, and missing answers while empty writes are answered
	firstFailure time.Time // time of the first of these
	denials      int       // 401 or 403 answers while empty writes pass, or after other samples were accepted
	deniedAt     time.Time // time of the last 401 or 403; zero before it

	// stored: the samples are in doubt, that is, they may be stored already. They are never sent all together; see
	// bisect.
	stored bool

	// cleared: nothing showed that the samples were at fault when they were refused. The samples in blamed were refused
	// alone.
	cleared bool
	blamed  map[givenup.Key]bool

	apart standsApart // why the samples are sent after the others of their batch

	squeezed client.Answer // the answer to an attempt with zstd that failed; zero if there was none

	older      bool // try remote write 1.0: the samples were refused as 2.0
	triedOlder bool // 1.0 was tried, or makes no sense
}

// A batch is tried in parts after poisonFailures failures over at least poisonTime, or after poisonDenials denials.
const (
	poisonFailures = 10
	poisonTime     = 5 * time.Minute
	poisonDenials  = 3
)

// stuck reports whether the batch itself may be why the receiver fails.
func (l *parcel) stuck(now time.Time) bool {
	return l.failures >= poisonFailures && now.Sub(l.firstFailure) >= poisonTime || l.denials >= poisonDenials
}

// fate is the result of try.
type fate uint8

const (
	settled  fate = iota // every sample has its outcome
	refused              // the receiver refuses these samples; the way to it works
	tooLarge             // 413
	stuck                // see parcel.stuck
	failed               // only in mode once: a failure that the samples need not have caused
)

// mode says how far try goes.
type mode uint8

const (
	// patient: retry without limit; find out whether a refusal is about the samples.
	patient mode = iota
	// parts of a refused batch: take each refusal as one of the samples; otherwise like patient.
	parts
	// once, for parts of a stuck batch: failures and denials count as answers about the samples.
	once
)

// deliver settles every sample of the parcel. The error is ctx's, errAhead, errHeld or errAllLate.
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

// deliverDoubted delivers samples in doubt.
func (s *shard) deliverDoubted(ctx context.Context, l *parcel) error {
	if err := s.awaitOpen(ctx, l); err != nil {
		return err
	}
	if err := s.tryDoubted(ctx, l); err != nil {
		return err
	}
	return s.bisect(ctx, l, client.Answer{}, nil)
}

// whole acts on the fate of a whole parcel. If done, no sample is left to deliver here; else the parcel is bisected.
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

// halve records that this many samples are too many. It delivers the first half of the parcel and puts the second half
// back at the front of the queue. Samples in doubt stay together: the later ones show whether the earlier ones are
// stored.
func (s *shard) halve(ctx context.Context, l *parcel) error {
	n := len(l.points)
	s.q.shrinkBatch(n)
	if l.unsure && !s.q.behind {
		return s.deliver(ctx, &parcel{points: l.points, stored: true})
	}
	half := withExemplars(l.points, n/2)
	if half == n { // a sample with many exemplars: some of them go alone
		half = n / 2
	}
	s.putBack(l.points[half:])
	return s.deliver(ctx, &parcel{points: l.points[:half]})
}

// try sends the parcel until something is known about its samples. If the fate is settled, they have their outcomes;
// otherwise l.points are those without one. The answer is the last one. The error is ctx's; errAhead, if samples must
// wait for the receiver's clock; or errHeld, if a part of a refused batch must not be sent because the target is held
// for refusing samples.
func (s *shard) try(ctx context.Context, l *parcel, m mode) (fate, client.Answer, error) {
	for {
		c := s.q.choose(l)
		lim, known := s.q.limits()
		if s.expire(l, c.Version, lim) {
			return 0, client.Answer{}, errAhead
		}
		if c.Version == wire.V2 && onlyExemplars(l.points) { // it would be an empty write, which proves nothing
			s.q.lostExemplars(len(l.points))
			l.points = nil
		}
		if len(l.points) == 0 {
			return settled, client.Answer{}, nil
		}
		p, err := s.q.enter(ctx)
		if err != nil {
			return 0, client.Answer{}, err
		}
		if _, knownNow := s.q.limits(); s.q.choose(l) != c || knownNow && !known { // changed while waiting
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

// testFirst uses p for a request that must come before the parcel: a test of a held target, or a request for the
// receiver's time. It reports whether it sent one and gave p back. The error is ctx's, or errHeld.
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

// post sends the parcel once. It gives p back if the parcel was not sent, or if s.sending has ended, which is the
// error.
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
	n, by := count(l.points), s.compression(l, m, c)
	var exemplars int
	s.body, exemplars = s.q.encoders.body(s.body[:0], c.Version, by, l.points, s.q.order())
	leftOut := n[metrics.Exemplars] - exemplars
	n[metrics.Exemplars] = exemplars
	s.q.metrics.Sending(n, len(s.body), l.attempts > 0)
	if l.attempts > 0 {
		s.q.retries.Add(1)
	}
	began := time.Now()
	a := s.q.send(s.sending, client.Request{Body: s.body, Version: c.Version, Compression: by, Samples: n[metrics.Samples] + n[metrics.Histograms], Attempt: l.attempts})
	s.q.took(time.Since(began))
	l.attempts++
	l.unsure = l.unsure || a.Again
	v := a.Verdict
	if v != client.Hold && v != client.Split && a.Status != client.StatusUnsupported {
		s.w.mayHave(newest)
	}
	if by == wire.Zstd && v != client.Delivered {
		l.squeezed = a
	}
	if v != client.Plain { // Plain says nothing about the version
		s.q.learnVersion(c, a, v)
	}
	if v == client.Delivered && a.Version == wire.V2 {
		s.q.sawWritten(a, exemplars)
		s.q.lostExemplars(leftOut)
	}
	if s.sending.Err() != nil && a.Status == 0 {
		s.q.gate.Release(p)
		return a, true, s.sending.Err()
	}
	return a, true, nil
}

// expire settles the samples of the parcel that are older than lim allows, that are ahead of both the receiver's clock
// and this host's, or that the version does not carry. If any sample must wait for the receiver's clock, it settles
// none and returns true.
func (s *shard) expire(l *parcel, version wire.Version, lim clock.Limits) (ahead bool) {
	if l.again {
		return false // they have their outcome already
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
	kept, lost := l.points[:0], 0
	var gone *series // of a sample that was settled just before: its exemplars follow
	for _, p := range l.points {
		if p.kind == exemplarPoint && p.series == gone {
			lost++
			continue
		}
		if p.kind != exemplarPoint {
			if why, out := s.q.unsendable(&p, version, lim); out {
				s.w.settle(p.seq, queue.One(why))
				gone = p.series
				continue
			}
			gone = nil
		}
		kept = append(kept, p)
	}
	s.q.lostExemplars(lost)
	l.points = kept
	return false
}

// unsendable returns the reason, if there is one, why a sample cannot be sent: its time, or its kind.
func (q *Queue) unsendable(p *point, version wire.Version, lim clock.Limits) (why queue.Reason, is bool) {
	switch {
	case p.t < lim.Oldest:
		return queue.TooOld, true
	case p.t > lim.Future:
		return queue.Future, true
	}
	return queue.Unsupported, !carries(&q.cfg, version, p)
}
