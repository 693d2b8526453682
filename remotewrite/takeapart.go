package remotewrite

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"hwsagent/remotewrite/client"
	"hwsagent/wal"
)

// takeApart looks for samples that make the receiver fail: parts of the batch are sent
// once each. A sample is given up only if other parts were taken before and after the
// last failure; what cannot be decided stays in l, and done is false.
func (s *shard) takeApart(ctx context.Context, l *parcel, a client.Answer) (done bool, err error) {
	s.q.log.Warn("A batch fails again and again; trying its parts", slog.String("answer", a.String()), slog.Int("samples", len(l.points)))
	points := s.withoutExemplars(l.points)
	r, err := s.cut(ctx, points, cutting{mode: once, known: true, budget: isolateBudget})
	if err != nil {
		return false, err
	}
	if r.passed == 0 || len(r.bad) == 0 {
		l.points = r.left()
		return len(l.points) == 0, nil
	}
	taken, clean, err := s.control(ctx, a)
	if err != nil {
		return false, err
	}
	if !taken || !clean {
		l.points = r.left()
		return false, nil
	}
	s.buryEach(r.bad, r.answers, 0)
	s.w.noteTaken(r.stored)
	s.w.settleAll(r.stored, one(wal.Resent))
	l.points = r.unknown
	return len(l.points) == 0, nil
}

// failsAlone tries a single sample that failed again, each time after another that was taken
// before: failed if it is taken never and the other always, stuck if that is not so clear.
func (s *shard) failsAlone(ctx context.Context, part *parcel) (fate, error) {
	if !s.hasGood {
		return stuck, nil
	}
	for range poisonAlone - 1 {
		taken, clean, err := s.control(ctx, client.Answer{})
		if err != nil || !taken || !clean {
			return stuck, err
		}
		switch f, _, err := s.try(ctx, part, once); {
		case errors.Is(err, errDoubted):
			return stuck, nil
		case err != nil || f == settled:
			return f, err
		}
	}
	return failed, nil
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

// buryEach gives up samples that were refused alone, each with its own answer. before is how
// many of the batch were given up before them: the log tells of the first few only.
func (s *shard) buryEach(points []point, answers []client.Answer, before int) {
	letters := make([]Letter, 0, len(points))
	for i := range points {
		letters = append(letters, letterOf(points[i], 1, answers[i], wal.Rejected))
	}
	s.giveUp(points, letters, wal.Rejected, before)
}

// bury gives up samples together: one letter stands for all.
func (s *shard) bury(points []point, a client.Answer, why wal.Reason) {
	if n := count(points); n[classSample]+n[classHistogram] > 0 {
		s.giveUp(points, []Letter{letterOf(points[0], n[classSample]+n[classHistogram], a, why)}, why, 0)
	}
}

// buryOneOf gives up one of the points, for it cannot be told which; the others are stored.
// It is the one that the receiver named when it refused all together, if it did.
func (s *shard) buryOneOf(points []point, a client.Answer) {
	if len(points) == 0 {
		return
	}
	i := namedIn(a.Text, points)
	s.bury(points[i:i+1], a, wal.Unconfirmed)
	others := slices.Concat(points[:i], points[i+1:])
	s.w.noteTaken(others)
	s.w.settleAll(others, one(wal.Resent))
}

// namedIn is the index of the point that a text means: it has the labels of its series, as
// Prometheus, Mimir and Thanos write them, and best of all its timestamp. 0 if there is none.
func namedIn(text string, points []point) int {
	best := 0
	for i := len(points) - 1; i >= 0; i-- {
		if !strings.Contains(text, points[i].series.labels().String()) {
			continue
		}
		if best = i; strings.Contains(text, strconv.FormatInt(points[i].t, 10)) {
			break
		}
	}
	return best
}

// giveUp makes the letters durable, then settles the samples.
func (s *shard) giveUp(points []point, letters []Letter, why wal.Reason, before int) {
	if len(points) == 0 {
		return
	}
	s.q.keep(letters, before)
	s.q.metrics.Failed(count(points))
	s.w.remember(points, why)
	s.w.settleAll(points, one(why))
}
