package remotewrite

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/givenup"
	"hwsagent/remotewrite/metrics"
	"hwsagent/remotewrite/split"
	"hwsagent/wal/queue"
)

// A state machine without I/O (package split) decides about a refused request. This file drives it: it passes the known
// facts about the samples to the machine, sends the requests that the machine asks for, reads the answers, and records
// the outcomes.

// errHeld means that a request was not sent because the target is held for refusing samples.
var errHeld = errors.New("the target is held because it refuses samples")

// bisection drives one machine.
type bisection struct {
	s       *shard
	m       *split.Machine
	points  []point
	with    map[givenup.Key][]point // exemplars of samples that are not sent yet
	answers map[int]client.Answer   // refusals, by request number
	sent    int                     // number of requests
	last    client.Answer           // the last refusal
	held    bool                    // the target is held, or did not accept the control sample
	failing bool                    // the receiver fails at the samples, and does not refuse them
	failed  bool                    // it failed at some of them
	known   bool                    // the kind of receiver was known before
	knew    bool                    // a reason for the quarantine was known before
	divide  bool                    // a reason became known meanwhile: the batch leaves the machine and is divided by it
}

// bisect settles the samples of a parcel. If first is nil, they may be stored already; otherwise they were refused
// together, and first was made from the answer a. Samples that stay in the parcel have no outcome, because nothing
// shows that they are at fault. The error is ctx's, errAhead or errAllLate.
func (s *shard) bisect(ctx context.Context, l *parcel, a client.Answer, first *split.Reply) error {
	all := count(l.points)[metrics.Exemplars]
	points, exemplars := apart(l.points)
	if first != nil {
		exemplars = nil // one of them may be the reason
	}
	for _, xs := range exemplars {
		all -= len(xs)
	}
	s.q.lostExemplars(all)
	if l.stored {
		points = s.settleTaken(points)
	}
	if l.points = points; len(points) == 0 {
		s.q.lostWith(exemplars)
		return nil
	}
	b := &bisection{s: s, points: points, with: exemplars, answers: make(map[int]client.Answer), last: a, known: s.q.kind() != split.Unknown, knew: s.q.quarantine.known.Load()}
	b.m = split.New(split.Config{
		Receiver: s.q.kind(),
		Limit:    s.q.batchLimit(),
		Shards:   len(s.w.shards),
		Turns:    s.q.trust.Turns(s.q.sinceBorn()),
		More:     l.stored && s.q.moreUnsure(),
		AnyOrder: s.q.behind,
		Seed:     math.Float64bits(s.q.gate.Random()),
	}, s.known(points, l))
	if first != nil {
		b.failing, b.failed = first.Kind == split.Failed, first.Kind == split.Failed
		b.answers[first.Ref] = a
		b.m.Refused(*first)
	}
	if err := b.run(ctx, l.stored); err != nil {
		return err
	}
	left := b.m.Open()
	l.points = make([]point, 0, len(left))
	blamed := make(map[givenup.Key]bool)
	for _, i := range left {
		l.points = append(append(l.points, points[i]), b.with[keyOf(points[i])]...)
		delete(b.with, keyOf(points[i]))
		if b.m.Blamed(i) {
			blamed[keyOf(points[i])] = true
		}
	}
	s.q.lostWith(b.with)
	l.blamed = blamed
	l.stored = l.stored || b.m.Doubt()
	if b.divide && !l.stored && len(left) > 0 {
		s.putBack(l.points)
		l.points = nil
	}
	switch {
	case len(left) == 0, b.held, b.divide:
		return nil
	case b.failing, b.failed && s.q.drops(): // samples that got no answer but 5xx are retried
		s.q.gate.DoubtEmpty() // the last accepted empty write was some time ago
		return nil
	case s.q.drops(): // only samples in doubt get here: others were dropped with their request
		s.bury(s.withoutExemplars(l.points), b.last, queue.Unconfirmed)
		l.points = nil
		return nil
	}
	return s.holdForData(ctx, b.last)
}

// known returns the known facts about points that are about to be sent again.
func (s *shard) known(points []point, l *parcel) []split.Sample {
	is := standings(points)
	within := split.NewPartitions(s.q.spread)
	for i := range points {
		if k := points[i].kind; k == intHistogram || k == floatHistogram {
			within.Histogram(points[i].series.hash)
		}
	}
	aged, now := time.Now().Add(-freshFor).UnixMilli(), s.q.sinceBorn()
	samples := make([]split.Sample, len(points))
	for i := range points {
		p := &points[i]
		x := &samples[i]
		*x = split.Sample{Series: p.series.hash, T: p.t, Standing: is[i], Aged: p.t <= aged, Blamed: l.blamed[keyOf(*p)]}
		switch n := p.series.refusals(); {
		case s.q.behind && x.Standing != split.Refused: // the target accepts late samples there, so their order is not why it refuses them
			x.Standing = split.Fresh
		case l.stored && x.Standing != split.Refused && !s.w.setBack(*p):
			x.Sent, x.Partition = true, within.Of(p.series.hash)
		case x.Standing == split.Refused:
			x.Refusals, x.Lately = uint8(min(n, split.RefusalsThatSpeak)), p.series.speaksForAll() && now-int64(n) < int64(refusedFor)
		case x.Standing == split.Stale:
			s.q.noteLateSeries(p.series)
		}
	}
	return samples
}

func keyOf(p point) givenup.Key { return givenup.Key{Hash: p.series.hash, T: p.t} }

// run drives the machine until it is done.
func (b *bisection) run(ctx context.Context, stored bool) error {
	for {
		r, ok := b.m.Next()
		b.settle()
		if !ok {
			return nil
		}
		told, err := b.send(ctx, r)
		if errors.Is(err, errHeld) {
			b.held = true
			b.m.Stop()
			b.settle()
			return nil
		}
		if err != nil {
			return err
		}
		b.m.Tell(told)
		b.learn()
		b.settle()
		if b.divide = !b.knew && b.s.q.quarantine.known.Load() && (stored || !b.m.Doubt()); b.divide {
			b.m.Stop() // it gives samples their outcome that it had withheld
			b.settle()
			return nil
		}
	}
}

// send sends the request that the machine asks for, and reads the answer.
func (b *bisection) send(ctx context.Context, r split.Request) (split.Reply, error) {
	b.sent++
	if r.Control {
		return b.control(ctx)
	}
	part := parcel{points: make([]point, 0, len(r.Samples)), withhold: r.Withhold}
	for _, i := range r.Samples {
		part.points = append(append(part.points, b.points[i]), b.with[keyOf(b.points[i])]...)
	}
	all, exemplars := len(part.points), count(part.points)[metrics.Exemplars]
	m := parts
	if r.Once {
		m = once
	}
	f, a, err := b.s.try(ctx, &part, m)
	if len(part.points) < all {
		b.gone(r.Samples, &part)
	}
	if err != nil {
		return split.Reply{}, err
	}
	for _, i := range r.Samples {
		delete(b.with, keyOf(b.points[i]))
	}
	if f == settled {
		return split.Reply{Kind: split.Took, Receiver: b.s.q.kind()}, nil
	}
	b.s.q.lostExemplars(exemplars) // the samples are sent again without them
	if f == refused && b.s.q.guardsLate() && a.SaysLate() {
		// Samples of a backlog that is too old for the receiver are not given up: they wait, whatever is wrong with
		// other samples of their batch.
		return split.Reply{}, errAllLate
	}
	if f == tooLarge && len(r.Samples) > 1 {
		b.s.q.shrinkBatch(len(part.points))
		b.m.Limit(b.s.q.batchLimit())
	}
	b.failing = f == stuck || f == failed
	b.failed = b.failed || b.failing
	b.last, b.answers[b.sent] = a, a
	return replyOf(f, a, part.unsure, b.sent, b.s.q.kind()), nil
}

// lostWith counts the exemplars of samples that got their outcome and were not sent with them: as a test, or not at all.
func (q *Queue) lostWith(exemplars map[givenup.Key][]point) {
	for _, xs := range exemplars {
		q.lostExemplars(len(xs))
	}
}

// gone reports to the machine which samples of a request the target accepted alone, as tests, and which were dropped.
func (b *bisection) gone(samples []int, part *parcel) {
	var taken, dropped []int
	for _, i := range samples {
		switch p := b.points[i]; {
		case slices.ContainsFunc(part.points, p.same):
		case slices.ContainsFunc(part.tested, p.same):
			taken = append(taken, i)
		default:
			dropped = append(dropped, i)
			delete(b.with, keyOf(p)) // they are counted
		}
	}
	b.m.Gone(taken, dropped)
}

// control sends a sample that the target accepted before.
func (b *bisection) control(ctx context.Context) (split.Reply, error) {
	k, clean, err := b.s.control(ctx)
	b.held = k == split.Opaque && !b.s.q.drops()
	if k == split.Took && !clean && b.failing {
		k = split.Opaque
	}
	return split.Reply{Kind: k}, err
}

// learn records what the machine has found out about the target.
func (b *bisection) learn() {
	q := b.s.q
	if k := b.m.Receiver(); !b.known && k != split.Unknown {
		b.known = true
		q.learn(k)
	}
	switch {
	case b.m.Random():
		q.distrust()
	case b.m.ProvedFully():
		q.trust.Vouch(q.sinceBorn())
	}
}

// settle records the outcomes that the machine has decided.
func (b *bisection) settle() {
	for _, v := range b.m.Verdicts() {
		points := make([]point, 0, len(v.Samples))
		for _, i := range v.Samples {
			points = append(points, b.points[i])
		}
		points, a := inLogOrder(points), b.answers[v.Ref]
		switch v.Outcome {
		case split.Resent:
			b.s.noteTaken(points)
			b.s.w.settleAll(points, queue.One(queue.Resent))
		case split.Delivered:
			b.s.settleDelivered(points)
		case split.Unconfirmed:
			if v.Bad > 0 {
				points = b.s.named(points, v.Bad, a)
			}
			b.s.bury(points, a, queue.Unconfirmed)
		case split.Rejected:
			for i := range points {
				b.s.noteRefused(points[i], a)
				b.s.bury(points[i:i+1], a, queue.Rejected)
			}
			if a.Status == 413 {
				b.s.q.restoreBatch()
			}
		}
	}
}

// replyOf makes a reply from a, the answer to request number ref; f is the fate that try returned.
func replyOf(f fate, a client.Answer, doubt bool, ref int, is split.Receiver) split.Reply {
	r := split.Reply{Kind: split.Opaque, Doubt: doubt, Ref: ref, Receiver: is}
	if a.WrotePart() {
		r.Unwritten = a.Samples - a.Written.Stored(a.Samples)
	}
	switch {
	case f == stuck, f == failed:
		r.Kind = split.Failed
	case f == tooLarge:
		r.Kind = split.TooLarge
	case a.Reason == client.ReasonDuplicate:
		r.Kind = split.Duplicate
	case a.Reason == client.ReasonLate:
		r.Kind = split.Late
	case a.Reason == client.ReasonTooOld:
		r.Kind = split.TooOld
	case a.Reason == client.ReasonFault, a.Reason == client.ReasonFuture:
		r.Kind = split.Bad
	}
	return r
}

// settleTaken settles as resent the samples of whose series the target accepted a later one, and returns the others. A
// shard sends a sample only after all earlier samples of its series have their outcome, so these had theirs in an
// earlier window. Samples given up in that window are recorded, and are not among them.
func (s *shard) settleTaken(points []point) []point {
	var taken, others []point
	for _, p := range points {
		if p.t <= p.series.newest() && p.series.newestIn() > s.w.commitOf(p.seq) {
			taken = append(taken, p)
		} else {
			others = append(others, p)
		}
	}
	if len(taken) == 0 {
		return points
	}
	s.w.settleAll(taken, queue.One(queue.Resent))
	return others
}
