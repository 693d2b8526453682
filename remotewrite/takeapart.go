package remotewrite

import (
	"context"
	"log/slog"
	"slices"

	"hwsagent/wal"
)

// isolate delivers the good samples of a refused batch and gives up the bad ones, when
// it is certain that the refusals meant them. The error is ctx's.
func (s *shard) isolate(ctx context.Context, points []point, a Answer) error {
	points = s.withoutExemplars(points)
	for len(points) > 0 {
		r, err := s.cut(ctx, points, a, parts)
		if err != nil {
			return err
		}
		clean := true
		if r.refusedLast {
			if clean, err = s.confirm(ctx, false); err != nil {
				return err
			}
		}
		if clean {
			s.w.settleAll(r.stored, one(wal.Resent))
			s.buryEach(r.bad, r.answers)
			s.bury(r.unknown, a, wal.Unconfirmed)
			return nil
		}
		points = r.left()
	}
	return nil
}

// takeApart looks for samples that make the receiver fail: parts of the batch are sent
// once each. A sample is given up only if other parts were taken before and after the
// last failure; what cannot be decided stays in l, and done is false.
func (s *shard) takeApart(ctx context.Context, l *parcel, a Answer) (done bool, err error) {
	s.q.log.Warn("A batch fails again and again; trying its parts", slog.String("answer", a.String()), slog.Int("samples", len(l.points)))
	points := s.withoutExemplars(l.points)
	r, err := s.cut(ctx, points, a, once)
	if err != nil {
		return false, err
	}
	if r.passed == 0 || len(r.bad) == 0 {
		l.points = r.left()
		return len(l.points) == 0, nil
	}
	clean, err := s.confirm(ctx, true)
	if err != nil {
		return false, err
	}
	if !clean {
		l.points = r.left()
		return false, nil
	}
	s.buryEach(r.bad, r.answers)
	s.w.settleAll(r.stored, one(wal.Resent))
	l.points = r.unknown
	return len(l.points) == 0, nil
}

// apart is what came of taking a batch apart. The samples that were taken are settled.
type apart struct {
	points               []point
	bad, stored, unknown []point // in no particular order among each other
	answers              []Answer
	passed               int
	refusedLast          bool // the last request was refused: nothing shows yet that the way was good
	open                 []bool
}

// left returns all samples that are not settled, in the log's order.
func (r *apart) left() []point {
	var left []point
	for i, open := range r.open {
		if open {
			left = append(left, r.points[i])
		}
	}
	return inLogOrder(left)
}

// cut carries out an isolation.
func (s *shard) cut(ctx context.Context, points []point, a Answer, m mode) (*apart, error) {
	points, spans := rounds(points)
	hashes := make([]uint64, len(points))
	for i := range points {
		hashes[i] = points[i].series.hash
	}
	kind := receiver(s.q.receiver.Load())
	if m == once {
		kind = rollsBack // a failure says nothing about what is kept
	}
	plan := newIsolation(kind, hashes, spans, isolateBudget)
	answers := make(map[int]Answer)
	r := &apart{points: points}
	for !(m == once && plan.hopeless()) {
		at, ok := plan.next()
		if !ok {
			break
		}
		part := parcel{points: make([]point, 0, len(at))}
		for _, i := range at {
			part.points = append(part.points, points[i])
		}
		f, last, err := s.try(ctx, &part, m)
		if err != nil {
			return nil, err
		}
		r.refusedLast = f != settled
		if f == settled {
			plan.accepted()
			continue
		}
		if len(part.points) < len(at) {
			at = plan.tookAlone(func(i int) bool { return !slices.ContainsFunc(part.points, points[i].same) })
		}
		if len(at) == 1 {
			answers[at[0]] = last
			if m == parts {
				clean, err := s.confirm(ctx, false)
				if err != nil {
					return nil, err
				}
				r.refusedLast = false
				if plan.spent(1); !clean {
					plan.again()
					continue
				}
			}
		}
		plan.refused()
	}
	if m == parts && plan.kind != kind {
		s.q.learn(plan.kind)
	}
	bad, stored, unknown := plan.result()
	r.passed, r.open = plan.passed, make([]bool, len(points))
	pick := func(at []int) (ps []point) {
		for _, i := range at {
			r.open[i] = true
			ps = append(ps, points[i])
		}
		return ps
	}
	r.bad, r.stored, r.unknown = pick(bad), pick(stored), inLogOrder(pick(unknown))
	for _, i := range bad {
		r.answers = append(r.answers, answers[i])
	}
	return r, nil
}

// withoutExemplars drops exemplars, which are not counted, and returns the samples.
func (s *shard) withoutExemplars(points []point) []point {
	kept := make([]point, 0, len(points))
	for _, p := range points {
		if p.kind != exemplarPoint {
			kept = append(kept, p)
		}
	}
	return kept
}

// buryEach gives up samples that were refused alone, each with its own answer.
func (s *shard) buryEach(points []point, answers []Answer) {
	letters := make([]Letter, 0, len(points))
	for i := range points {
		letters = append(letters, letterOf(points[i], 1, answers[i], wal.Rejected))
	}
	s.giveUp(points, letters, wal.Rejected)
}

// bury gives up samples together: one letter stands for all.
func (s *shard) bury(points []point, a Answer, why wal.Reason) {
	if n := count(points); n[classSample]+n[classHistogram] > 0 {
		s.giveUp(points, []Letter{letterOf(points[0], n[classSample]+n[classHistogram], a, why)}, why)
	}
}

// giveUp makes the letters durable, then settles the samples.
func (s *shard) giveUp(points []point, letters []Letter, why wal.Reason) {
	if len(points) == 0 {
		return
	}
	s.q.keep(letters)
	s.q.metrics.Failed(count(points))
	s.w.remember(points, why)
	s.w.settleAll(points, one(why))
}
