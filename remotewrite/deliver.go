package remotewrite

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/metrics"
	"hwsagent/remotewrite/protocol"
	"hwsagent/remotewrite/wire"
	"hwsagent/wal/queue"
)

// parcel is a batch, or a part of one, until its samples have their outcomes.
type parcel struct {
	points   []point // in log order
	attempts int

	// again: the sample was accepted before; it is sent again as the control.
	again bool

	gone []point // samples that got their outcome otherwise: accepted alone, as tests of a held target, or too old to send

	// unsure: an attempt got no final answer, so the receiver may have the samples.
	unsure bool

	failures int       // answers that may be due to the samples: see mayBlame
	denials  int       // 401, 403 and the like, after other samples were accepted in between
	deniedAt time.Time // time of the last of these; zero before it

	bare         bool // without exemplars and metadata
	fresh        bool // on a new connection
	hadExemplars bool

	older      bool          // the next attempt is a trial of 1.0
	triedOlder bool          // 1.0 was tried, or makes no sense
	notAsNewer client.Answer // why it is tried: the answer to 2.0
}

// A batch may be at fault itself after mostFailures failures, or after mostDenials denials.
const (
	mostFailures = 3
	mostDenials  = 3
)

// stuck reports whether the batch itself may be why the receiver fails.
func (l *parcel) stuck() bool { return l.failures >= mostFailures || l.denials >= mostDenials }

// fate is the result of try.
type fate uint8

const (
	unsent   fate = iota // no request was sent
	settled              // every sample has its outcome
	refused              // the receiver refuses these samples
	tooLarge             // 413
	stuck                // see parcel.stuck
	failed               // only in mode parts: a failure that the samples may have caused
)

// mode says how far try goes.
type mode uint8

const (
	// patient: retry without limit; test a held target.
	patient mode = iota
	// parts of a divided batch, and controls: a failure that the samples may have caused is an answer, and no request goes to a
	// held target.
	parts
)

// deliver settles every sample of the parcel. The error is ctx's.
func (s *shard) deliver(ctx context.Context, l *parcel) error {
	l.hadExemplars = slices.ContainsFunc(l.points, func(p point) bool { return p.kind == exemplarPoint })
	for len(l.points) > 0 {
		f, a := unsent, client.Answer{}
		if !s.q.facts.TooOld() {
			var err error
			if f, a, err = s.try(ctx, l, patient); err != nil {
				return err
			}
		}
		switch {
		case f == settled:
			return nil
		case f == tooLarge && len(l.points) > 1:
			return s.halve(ctx, l)
		case f == stuck:
			s.q.log.Warn("A batch fails again and again; trying its parts", slog.String("answer", a.String()), slog.Int("samples", len(l.points)))
		}
		if err := s.divide(ctx, l, f, a); err != nil {
			return err
		}
		*l = parcel{points: l.points, attempts: l.attempts, unsure: l.unsure}
	}
	return nil
}

// halve records that this many samples are too many. It delivers the first half of the parcel and puts the second half
// back at the front of the queue.
func (s *shard) halve(ctx context.Context, l *parcel) error {
	n := len(l.points)
	s.q.shrinkBatch(n)
	half := withExemplars(l.points, n/2)
	if half == n { // a sample with many exemplars: some of them go alone
		half = n / 2
	}
	l.markDoubt()
	s.putBack(l.points[half:])
	return s.deliver(ctx, &parcel{points: l.points[:half]})
}

// markDoubt records at each sample that it may be stored, if an attempt got no final answer.
func (l *parcel) markDoubt() {
	for i := range l.points {
		l.points[i].doubt = l.points[i].doubt || l.unsure
	}
}

// try sends the parcel until something is known about its samples. If the fate is settled, they have their outcomes;
// otherwise l.points are those without one. The answer is the last one. The error is ctx's; or errHeld, if a part of a
// refused batch must not be sent because the target is held.
func (s *shard) try(ctx context.Context, l *parcel, m mode) (fate, client.Answer, error) {
	for {
		c := s.q.choose(l)
		s.expire(l, c.Version)
		if c.Version == wire.V2 && onlyExemplars(l.points) { // 2.0 does not accept them
			s.q.lostExemplars(len(l.points))
			l.points = nil
		}
		if len(l.points) == 0 {
			return settled, client.Answer{}, nil
		}
		p, err := s.q.enter(ctx)
		switch {
		case err != nil:
			return 0, client.Answer{}, err
		case s.q.choose(l) != c: // changed while waiting
			s.q.gate.Release(p)
			continue
		case p.Test && m != patient:
			s.q.gate.Release(p)
			return 0, client.Answer{}, errHeld
		case p.Test:
			if err := s.test(p, l); err != nil {
				return 0, client.Answer{}, err
			}
			continue
		}
		a, sent, err := s.post(p, l, m, c)
		if err != nil {
			return 0, a, err
		}
		if !sent {
			continue
		}
		if f, known := s.judge(p, l, a, m, c); known {
			return f, a, nil
		}
	}
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
	n, by, began := count(l.points), s.compression(l, m, c), time.Now()
	var exemplars int
	s.body, exemplars = s.q.encoders.body(s.body[:0], c.Version, by, l.points, s.q.order(), l.bare || s.q.facts.Bare(began))
	leftOut := n[metrics.Exemplars] - exemplars
	n[metrics.Exemplars] = exemplars
	s.q.metrics.Sending(n, len(s.body), l.attempts > 0)
	if l.attempts > 0 {
		s.q.retries.Add(1)
	}
	began = time.Now()
	a := s.q.send(s.sending, client.Request{Body: s.body, Version: c.Version, Compression: by, Samples: n[metrics.Samples] + n[metrics.Histograms], Attempt: l.attempts})
	s.q.took(time.Since(began))
	l.attempts++
	l.unsure = l.unsure || a.Again
	if a.Verdict == client.Delivered {
		s.q.lostExemplars(leftOut)
	}
	if s.sending.Err() != nil && a.Status == 0 {
		s.q.gate.Release(p)
		return a, true, s.sending.Err()
	}
	return a, true, nil
}

// expire settles the samples of the parcel that are too old, that are ahead of both the receiver's clock and this host's, or
// that the version does not carry.
func (s *shard) expire(l *parcel, version wire.Version) {
	if l.again {
		return // they have their outcome already
	}
	lim := s.q.limits()
	if !slices.ContainsFunc(l.points, func(p point) bool {
		return !lim.admit(p.t) || p.kind != float && !carries(&s.q.cfg, version, &p)
	}) {
		return
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
				l.gone = append(l.gone, p)
				gone = p.series
				continue
			}
			gone = nil
		}
		kept = append(kept, p)
	}
	s.q.lostExemplars(lost)
	l.points = kept
}

// outOfTime reports whether a sample of the parcel is out of the limits on time, so that it is settled before the next attempt.
func (q *Queue) outOfTime(l *parcel) bool {
	lim := q.limits()
	return !l.again && slices.ContainsFunc(l.points, func(p point) bool { return p.kind != exemplarPoint && !lim.admit(p.t) })
}

// unsendable returns the reason, if there is one, why a sample cannot be sent: its time, or its kind.
func (q *Queue) unsendable(p *point, version wire.Version, lim limits) (why queue.Reason, is bool) {
	switch {
	case p.t < lim.oldest:
		return queue.TooOld, true
	case p.t > lim.newest:
		return queue.Future, true
	}
	return queue.Unsupported, !carries(&q.cfg, version, p)
}
