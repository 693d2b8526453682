package remotewrite

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/metrics"
	"hwsagent/remotewrite/split"
	"hwsagent/remotewrite/wire"
	"hwsagent/wal/queue"
)

// Package split decides what becomes of a batch that the receiver refuses or fails at. This file does what it asks for: it
// sends the requests, and records the outcomes.

// errHeld means that a request was not sent because the target is held.
var errHeld = errors.New("the target is held because it refuses samples")

// division drives one machine.
type division struct {
	s       *shard
	m       *split.Machine
	points  []point
	answers []client.Answer // by number
}

// divide settles the samples of a parcel that was refused or too large, or that has failed too often; f and a are the fate and the answer.
// With fate unsent it was not sent, because the batch before it was too old. Samples that stay in the parcel have no
// outcome: the target is held, or fails at everything. They keep their exemplars; those of the others are counted and lost, because a part
// does not carry them. The error is ctx's.
func (s *shard) divide(ctx context.Context, l *parcel, f fate, a client.Answer) error {
	if kindOf(f, a) == split.Opaque {
		s.lane.searches.Add(1)
		defer s.lane.searches.Add(-1)
	}
	whole, points := l.points, withoutExemplars(l.points)
	exemplars := len(whole) - len(points)
	extras := a.Version == wire.V2 || exemplars > 0
	if len(points) == 0 {
		l.points = nil
		s.lane.lostExemplars(exemplars)
		return nil
	}
	samples := make([]split.Sample, len(points))
	for i := range points {
		p := &points[i]
		samples[i] = split.Sample{Series: p.series.hash, T: p.t, Doubt: p.doubt || l.unsure, New: p.series.isNew(), Type: uint8(p.kind), Rejected: p.series.rejected}
	}
	d := &division{s: s, points: points, m: split.New(&s.lane.facts, split.Config{Extras: extras && !s.lane.facts.Bare(time.Now()), Drop: s.lane.drops()}, samples)}
	switch f {
	case refused, tooLarge:
		d.m.Refused(d.answer(f, a), time.Now())
	case stuck:
		d.m.Failing(d.answer(f, a), time.Now())
	default:
		d.m.AskNewest()
	}
	err := d.run(ctx) // after an error the window ends, and the samples without an outcome are read from the log again
	s.lane.apart.Store(nil)
	l.points = left(whole, d.m)
	s.lane.lostExemplars(exemplars - count(l.points)[metrics.Exemplars])
	return err
}

// left returns the samples among points that have no outcome, with their doubt and their exemplars.
func left(points []point, m *split.Machine) (kept []point) {
	open, number := m.Open(), -1
	keep := len(open) > 0 // the first exemplars may be of a sample that was sent without them
	for _, p := range points {
		if p.kind != exemplarPoint {
			number++
			if keep = len(open) > 0 && open[0] == number; keep {
				open, p.doubt = open[1:], m.Doubt(number)
			}
		}
		if keep {
			kept = append(kept, p)
		}
	}
	return kept
}

// run drives the machine until it ends.
func (d *division) run(ctx context.Context) error {
	for {
		step := d.m.Next(time.Now())
		d.settle()
		var answer split.Answer
		var err error
		switch step.Do {
		case split.Send:
			answer, err = d.send(ctx, step)
		case split.Control:
			answer, err = d.control(ctx)
		case split.Wait:
			why := "waits for a part of a batch that the receiver does not take: " + d.failure().Why()
			d.s.lane.apart.Store(&why)
			err = gate.Sleep(ctx, time.Until(step.Until))
		case split.Hold:
			return d.s.holdForData(ctx, d.last())
		default:
			return nil
		}
		switch {
		case errors.Is(err, errHeld):
			return nil
		case err != nil:
			return err
		case step.Do != split.Wait:
			d.m.Tell(answer, time.Now())
			d.settle()
		}
	}
}

// last returns the last answer, the zero Answer if there was none.
func (d *division) last() client.Answer {
	if len(d.answers) == 0 {
		return client.Answer{}
	}
	return d.answers[len(d.answers)-1]
}

// failure returns the last answer that was not an acceptance.
func (d *division) failure() client.Answer {
	for _, a := range slices.Backward(d.answers) {
		if a.Verdict != client.Delivered {
			return a
		}
	}
	return client.Answer{}
}

// send sends the request that the machine asks for.
func (d *division) send(ctx context.Context, step split.Step) (split.Answer, error) {
	part := parcel{role: asPart, how: step.How, points: make([]point, 0, len(step.Samples))}
	for _, i := range step.Samples {
		part.points = append(part.points, d.points[i])
	}
	f, a, err := d.s.try(ctx, &part)
	if err == nil && f != settled && len(part.points) < len(step.Samples) || f == settled && len(part.gone) > 0 {
		d.m.Gone(slices.DeleteFunc(slices.Clone(step.Samples), func(i int) bool { return !slices.ContainsFunc(part.gone, d.points[i].same) }))
	}
	if err != nil {
		return split.Answer{}, err
	}
	if f == tooLarge && len(step.Samples) > 1 {
		d.s.lane.shrinkBatch(len(part.points))
	}
	answer := d.answer(f, a)
	answer.Lost = answer.Lost || part.unsure
	return answer, nil
}

// control sends a sample again that the target accepted. If the target answers as if it refused everything, that holds it.
func (d *division) control(ctx context.Context) (split.Answer, error) {
	p := d.s.controlSample()
	if !p.exists() {
		return split.Answer{Kind: split.None}, nil
	}
	f, a, err := d.s.try(ctx, &parcel{role: asControl, points: []point{p}})
	if err != nil {
		return split.Answer{}, err
	}
	answer := d.answer(f, a)
	if a.Verdict == client.Hold {
		answer.Kind = split.Denied
	}
	return answer, nil
}

// answer translates an answer for the machine, and numbers it.
func (d *division) answer(f fate, a client.Answer) split.Answer {
	d.answers = append(d.answers, a)
	t := split.Answer{Kind: kindOf(f, a), Words: wordsOf(a), Ref: len(d.answers) - 1, Lost: f == stuck || f == failed, Refusal: f == failed && a.Status/100 == 4}
	if !a.Date.IsZero() {
		t.Date = a.Date.UnixMilli()
	}
	return t
}

func kindOf(f fate, a client.Answer) split.Kind {
	switch {
	case f == settled:
		return split.Taken
	case f == stuck, f == failed:
		return split.Failed
	case f == tooLarge:
		return split.TooLarge
	case a.Reason == client.ReasonLate:
		return split.Late
	case a.Reason == client.ReasonDuplicate:
		return split.Duplicate
	case a.Reason == client.ReasonTooOld:
		return split.TooOld
	case a.Reason == client.ReasonFault:
		return split.Bad
	}
	return split.Opaque
}

// wordsOf returns what answers with one cause have in common: the reason in the reply table; else the status and the text, without numbers.
func wordsOf(a client.Answer) string {
	if a.FromDatabase() {
		return a.Row.String()
	}
	const longest = 200
	text := a.String()
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, text[:min(len(text), longest)])
}

// settle records the outcomes that the machine has decided. Delivered samples have theirs already.
func (d *division) settle() {
	reasons := map[split.Outcome]queue.Reason{split.Rejected: queue.Rejected, split.Old: queue.TooOld, split.Unconfirmed: queue.Unconfirmed}
	for _, v := range d.m.Verdicts() {
		why, dropped := reasons[v.Outcome]
		if !dropped {
			continue
		}
		points := make([]point, 0, len(v.Samples))
		for _, i := range v.Samples {
			points = append(points, d.points[i])
		}
		a := d.answers[v.Ref]
		for i := range points {
			if r := points[i].series; why == queue.Rejected && !a.FromDatabase() && r.rejected < split.MostRejected {
				r.rejected++
			}
		}
		if v.Mute {
			d.s.mute(points, a, why)
		}
		d.s.bury(inLogOrder(points), a, why)
		if a.Status == 413 {
			d.s.lane.restoreBatch()
		}
	}
}

// drops reports whether the entry says to give up all refused samples: then no refusal holds the target.
func (q *Queue) drops() bool { return q.cfg.Target.OnRefusal == config.RefusalDrop }

// sinceBorn returns the age of the queue in ns, never 0.
func (q *Queue) sinceBorn() int64 { return max(1, int64(time.Since(q.born))) }

// controlSample returns the sample that the target accepted last: this shard's, or that of any other shard. If there is none, it
// returns one that the receiver's database refused for its time: it is refused again in the same words as long as the way
// to the database works.
func (s *shard) controlSample() point {
	for _, p := range []point{s.good, s.lane.lastGood(), s.late} {
		if p.exists() {
			return p
		}
	}
	return s.lane.last(&s.lane.refusedAsLate)
}

// holdForData holds the target because nothing shows that the samples it refuses are at fault.
func (s *shard) holdForData(ctx context.Context, a client.Answer) error {
	p, err := s.lane.enter(ctx)
	if err != nil {
		return err
	}
	if p.Test {
		s.lane.gate.Release(p) // it is held already
		return nil
	}
	if a.Verdict == client.Hold {
		s.lane.refused(p, a)
		return nil
	}
	s.lane.gate.RefusedData(p, refusesAll+a.Why())
	return nil
}

// refusesAll explains why a target is held that refuses samples without contrast.
const refusesAll = "refuses every sample: "

// refused gives p back after an answer that holds the target.
func (q *Queue) refused(p gate.Pass, a client.Answer) {
	if a.BlamesData() {
		q.gate.RefusedData(p, a.Why())
	} else {
		q.gate.Refused(p, a.Why())
	}
	q.gate.Wait(a.RetryAfter)
}

// withExemplars returns where to cut points so that the first n, and the exemplars of the last of them, come before the
// cut: remote write 2.0 does not accept exemplars without a sample of their series.
func withExemplars(points []point, n int) int {
	for n > 0 && n < len(points) && points[n].kind == exemplarPoint && points[n].series == points[n-1].series {
		n++
	}
	return n
}

// withoutExemplars returns the samples without the exemplars, which have no outcome.
func withoutExemplars(points []point) []point {
	if count(points)[metrics.Exemplars] == 0 {
		return points
	}
	return slices.DeleteFunc(slices.Clone(points), func(p point) bool { return p.kind == exemplarPoint })
}

// onlyExemplars reports whether no point is a sample.
func onlyExemplars(points []point) bool {
	return !slices.ContainsFunc(points, func(p point) bool { return p.kind != exemplarPoint })
}

// lostExemplars counts exemplars that no request will have.
func (q *Queue) lostExemplars(n int) {
	var c metrics.Counts
	c[metrics.Exemplars] = n
	q.metrics.Failed(c)
}

// bury gives up samples with one dead letter for all: it stores the letter, then settles the samples.
func (s *shard) bury(points []point, a client.Answer, why queue.Reason) {
	c := count(points)
	if n := c[metrics.Samples] + c[metrics.Histograms]; n > 0 {
		s.lane.keep(letterOf(points[0], n, a, why))
		s.lane.metrics.Failed(c)
		s.w.settleAll(points, queue.One(why))
	}
}

// inLogOrder sorts points by entry and keeps the order within each.
func inLogOrder(points []point) []point {
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.seq, b.seq) })
	return points
}
