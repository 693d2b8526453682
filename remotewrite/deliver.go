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
	"hwsagent/remotewrite/split"
	"hwsagent/remotewrite/wire"
	"hwsagent/wal/queue"
)

// role is what a parcel is sent for.
type role uint8

const (
	// asBatch: until its samples have their outcomes; while the target is held, they test it.
	asBatch role = iota
	// asPart of a divided batch, or as a probe or test: a failure that the samples may have caused is an answer. It is not sent to a
	// held target.
	asPart
	// asControl is as a part, but with a sample that the target accepted before, or refused: its outcome is settled.
	asControl
)

// parcel is the samples of a request, and what its answers have shown so far.
type parcel struct {
	role     role
	how      split.How
	points   []point // in log order
	gone     []point // samples that got their outcome otherwise: accepted alone, as tests of a held target, or too old to send
	attempts int
	taken    bool // its last request was accepted
	unsure   bool // an attempt got no final answer, so the receiver may have the samples
	choked   bool // the receiver answered 5xx to the attempt with zstd
	blame    blame
	older    older
}

// blame is what suggests that a batch itself is why the receiver does not take it.
type blame struct {
	failures int       // answers that may be due to the samples: see mayBlame
	denials  int       // 401, 403 and the like, after other samples were accepted in between
	deniedAt time.Time // time of the last of these; zero before it
	busy     int       // 429 in a row
}

// A batch may be at fault itself after mostFailures failures, or after mostDenials denials. After mostBusy answers 429 in a row it is
// halved: a tenant's limit may be smaller than the batch.
const (
	mostFailures = 3
	mostDenials  = 3
	mostBusy     = 3
	leastBusy    = 200 // no smaller batch is halved for that
)

// stuck reports whether the batch may be at fault.
func (b *blame) stuck() bool { return b.failures >= mostFailures || b.denials >= mostDenials }

// fate is the result of try.
type fate uint8

const (
	unsent   fate = iota // no request was sent
	settled              // every sample has its outcome
	refused              // the receiver refuses these samples
	tooLarge             // 413
	busy                 // 429 again and again
	stuck                // see blame.stuck
	failed               // of a part: a failure that the samples may have caused
)

// deliver settles every sample of the parcel. The error is ctx's.
func (s *shard) deliver(ctx context.Context, l *parcel) error {
	for len(l.points) > 0 {
		f, a := unsent, client.Answer{}
		if !s.lane.asksNewest() {
			var err error
			s.fit(l)
			if f, a, err = s.try(ctx, l); err != nil {
				return err
			}
		}
		switch {
		case f == settled:
			return nil
		case f == tooLarge && len(l.points) > 1, f == busy:
			return s.halve(ctx, l)
		case (f == stuck || f == refused && !a.AboutTime()) && withExemplars(l.points, mostDivided) < len(l.points):
			s.lane.sendSmaller(a)
			l.doubtRepeated()
			*l = parcel{points: l.points, attempts: l.attempts, unsure: l.unsure}
			continue
		case f == stuck:
			s.lane.log.Warn("A batch fails again and again; trying its parts", slog.String("answer", a.String()), slog.Int("samples", len(l.points)))
		}
		if err := s.divide(ctx, l, f, a); err != nil {
			return err
		}
		*l = parcel{points: l.points, attempts: l.attempts, unsure: l.unsure}
	}
	return nil
}

// asksNewest reports whether only the newest samples of a batch are sent, because the batch before it was too old as a whole. Only a
// whole batch tests a held target: otherwise nothing would ever be sent to it again.
func (q *Queue) asksNewest() bool { return q.facts.TooOld() && q.gate.View().State != gate.Held }

// fit puts the samples that are too many for one request back into the queue: a batch whose newest samples are asked may have any size.
func (s *shard) fit(l *parcel) {
	n := withExemplars(l.points, s.lane.batchLimit())
	if n >= len(l.points) {
		return
	}
	l.markDoubt()
	s.putBack(l.points[n:])
	l.points = l.points[:n]
}

// mostDivided is how many samples a batch may have that is divided, unless the refusal is about time. A larger one is sent again in pieces of
// that size: a division ends after a number of refusals that prove nothing, and a large batch needs more of them.
const mostDivided = 2000

// doubtRepeated records at each sample of a series with several samples that it may be stored: a receiver that refuses a request may keep its
// good part, and would then refuse all but the newest as late.
func (l *parcel) doubtRepeated() {
	n := make(map[uint64]int, len(l.points))
	for _, p := range withoutExemplars(l.points) {
		n[p.series.hash]++
	}
	for i := range l.points {
		p := &l.points[i]
		p.doubt = p.doubt || n[p.series.hash] > 1
	}
}

// halve delivers the first half of the parcel and puts the second half back at the front of the queue. If the half is taken,
// requests get smaller; otherwise the parcel was not refused for its size.
func (s *shard) halve(ctx context.Context, l *parcel) error {
	n := len(l.points)
	half := withExemplars(l.points, n/2)
	if half == n { // a sample with many exemplars: some of them go alone
		half = n / 2
	}
	l.markDoubt()
	s.putBack(l.points[half:])
	first := &parcel{points: l.points[:half]}
	err := s.deliver(ctx, first)
	if first.taken {
		s.lane.shrinkBatch(n)
	}
	return err
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
func (s *shard) try(ctx context.Context, l *parcel) (fate, client.Answer, error) {
	for {
		c := s.lane.choose(l)
		s.expire(l, c.Version)
		if c.Version == wire.V2 && onlyExemplars(l.points) { // 2.0 does not accept them
			s.lane.lostExemplars(len(l.points))
			l.points = nil
		}
		if len(l.points) == 0 {
			return settled, client.Answer{}, nil
		}
		p, ok, err := s.permit(ctx, l)
		switch {
		case err != nil:
			return 0, client.Answer{}, err
		case !ok:
			continue
		case s.lane.choose(l) != c: // changed while waiting
			s.lane.gate.Release(p)
			continue
		}
		a, sent, err := s.post(p, l, c)
		if err != nil {
			return 0, a, err
		}
		if !sent {
			continue
		}
		if f, known := s.judge(p, l, a, c); known {
			return f, a, nil
		}
	}
}

// permit waits for the permission to send the parcel. While the target is held, it sends tests, which are requests of their own, and
// ok is false after each: the parcel may have lost a sample. The error is ctx's; or errHeld, if the parcel is part of a batch.
func (s *shard) permit(ctx context.Context, l *parcel) (p gate.Pass, ok bool, err error) {
	p, err = s.lane.enter(ctx)
	switch {
	case err != nil || !p.Test:
		return p, err == nil, err
	case l.role != asBatch:
		s.lane.gate.Release(p)
		return p, false, errHeld
	}
	return p, false, s.test(p, l)
}

// post sends the parcel once. It gives p back if the parcel was not sent, or if s.sending has ended, which is the
// error.
func (s *shard) post(p gate.Pass, l *parcel, c protocol.Choice) (_ client.Answer, sent bool, _ error) {
	newest := uint64(0)
	for i := range l.points {
		newest = max(newest, l.points[i].seq)
	}
	if err := s.w.reserve(newest); err != nil {
		s.lane.gate.Failed(p, err.Error(), 0, false)
		s.lane.note(err.Error())
		return client.Answer{}, false, nil
	}
	n, by, began := count(l.points), s.compression(l, c), time.Now()
	var exemplars int
	s.body, exemplars = s.lane.encoders.body(s.body[:0], c.Version, by, l.points, s.lane.order(), l.how == split.Bare || s.lane.facts.Bare(began))
	leftOut := n[metrics.Exemplars] - exemplars
	n[metrics.Exemplars] = exemplars
	s.lane.metrics.Sending(n, len(s.body), l.attempts > 0)
	if l.attempts > 0 {
		s.lane.retries.Add(1)
	}
	began = time.Now()
	a := s.lane.send(s.sending, client.Request{Body: s.body, Version: c.Version, Compression: by, Samples: n[metrics.Samples] + n[metrics.Histograms], Attempt: l.attempts, Fresh: l.how == split.Fresh})
	s.lane.took(time.Since(began))
	l.attempts++
	l.unsure = l.unsure || a.Again
	if a.Verdict == client.Delivered {
		s.lane.lostExemplars(leftOut)
	}
	if s.sending.Err() != nil && a.Status == 0 {
		s.lane.gate.Release(p)
		return a, true, s.sending.Err()
	}
	return a, true, nil
}

// expire settles the samples of the parcel that are too old, that are ahead of both the receiver's clock and this host's, or
// that the version does not carry.
func (s *shard) expire(l *parcel, version wire.Version) {
	if l.role == asControl {
		return
	}
	lim := s.lane.limits()
	if !slices.ContainsFunc(l.points, func(p point) bool {
		return !lim.admit(p.t) || p.kind != float && !carries(&s.lane.cfg, version, &p)
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
			if why, out := s.lane.unsendable(&p, version, lim); out {
				s.w.settle(p.seq, queue.One(why))
				l.gone = append(l.gone, p)
				gone = p.series
				continue
			}
			gone = nil
		}
		kept = append(kept, p)
	}
	s.lane.lostExemplars(lost)
	l.points = kept
}

// outOfTime reports whether a sample of the parcel is out of the limits on time, so that it is settled before the next attempt.
func (q *Queue) outOfTime(l *parcel) bool {
	lim := q.limits()
	return l.role != asControl && slices.ContainsFunc(l.points, func(p point) bool { return p.kind != exemplarPoint && !lim.admit(p.t) })
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
