package remotewrite

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"hwsagent/wal"
)

// takeApart looks for samples that make the receiver fail: parts of the batch are sent
// once each. A sample is given up only if other parts were taken before and after the
// last failure; what cannot be decided stays in l, and done is false.
func (s *shard) takeApart(ctx context.Context, l *parcel, a Answer) (done bool, err error) {
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
	clean, err := s.confirm(ctx, true)
	if err != nil {
		return false, err
	}
	if !clean {
		l.points = r.left()
		return false, nil
	}
	s.buryEach(r.bad, r.answers, 0)
	s.w.noteTaken(r.stored)
	s.w.settleAll(r.stored, one(wal.Resent))
	l.points = r.unknown
	return len(l.points) == 0, nil
}

// apart is what came of taking a batch apart. The samples that were taken are settled.
type apart struct {
	points               []point
	givenUp              []point // bad, and settled as well
	bad, stored, unknown []point // in no particular order among each other
	suspects             []point // likewise; at least one is bad, the others are stored
	doubted              []point // sent together, all of them or none are stored
	answers              []Answer
	passed               int
	requests             int  // that it took
	refusedLast          bool // the last request was refused: nothing shows yet that the way was good
	open                 []bool
}

// left returns all samples that are not settled, but for the doubted, in the log's order.
func (r *apart) left() []point {
	var left []point
	for i, open := range r.open {
		if open {
			left = append(left, r.points[i])
		}
	}
	return inLogOrder(left)
}

// goodEnough reports whether what was spent delivered enough to go on with what is left of
// the batch as if it were another: half a good sample for each request.
func (r *apart) goodEnough() bool { return 2*r.passed >= r.requests }

// cutting is how a batch is taken apart.
type cutting struct {
	mode      mode
	known     bool // as of newIsolation
	budget    int  // in requests
	rollsBack bool // do not find out what the receiver does with the good part
	resent    bool // samples may be stored already
}

// cut carries out an isolation. What was refused alone of parts is given up at once: were the
// agent stopped or killed before that, with what comes after it stored, it would be refused like
// what is stored, and pass for it.
func (s *shard) cut(ctx context.Context, points []point, c cutting) (*apart, error) {
	points, spans := rounds(points)
	hashes := make([]uint64, len(points))
	for i := range points {
		hashes[i] = points[i].series.hash
	}
	kind := s.q.kind()
	m := c.mode
	if m == once || c.rollsBack {
		kind = rollsBack // a failure says nothing about what is kept
	}
	plan := newIsolation(kind, hashes, spans, c.known, c.budget)
	plan.doubt = m == once
	answers, doubts := make(map[int]Answer), 0
	r := &apart{points: points}
	for !(m == once && plan.hopeless()) {
		if m == parts {
			for _, i := range plan.bad[len(r.givenUp):] {
				s.buryEach(points[i:i+1], []Answer{answers[i]}, len(r.givenUp))
				r.givenUp = append(r.givenUp, points[i])
			}
		}
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
			doubts = 0
			plan.accepted()
			continue
		}
		if len(part.points) < len(at) {
			at = plan.tookAlone(func(i int) bool { return !slices.ContainsFunc(part.points, points[i].same) })
		}
		switch {
		case m == parts && plan.resting && part.unsure:
			r.doubted = inLogOrder(part.points)
			plan.leaveRest()
			continue
		case len(at) > 1:
		case m == parts:
			answers[at[0]] = last
			clean, err := s.certain(ctx, false, &doubts)
			if err != nil {
				return nil, err
			}
			r.refusedLast = false
			if plan.spent(1); !clean {
				plan.again()
				continue
			}
			doubts = 0
			if c.resent {
				stored, n, err := s.storedAsLate(ctx, part.points[0], last)
				if err != nil {
					return nil, err
				}
				if stored {
					s.w.noteTaken(part.points)
					s.w.settleAll(part.points, one(wal.Resent))
					plan.spent(-2) // as it pays: those beside it are likely to be stored, too
					plan.found()
					continue
				}
				plan.spent(n)
			}
		case m == once:
			if !s.hasGood && plan.later() {
				continue // until another was taken, nothing shows that it is to blame
			}
			answers[at[0]] = last
			plan.spent(2 * (poisonAlone - 1))
			if f, err = s.failsAlone(ctx, &part); err != nil {
				return nil, err
			}
			if f == settled {
				plan.accepted()
				continue
			}
			if f == stuck {
				plan.giveUp()
				continue
			}
		}
		plan.refused(last.String(), saysTooOld(last))
	}
	if m == parts && plan.kind != kind && !plan.tooOld {
		s.q.learn(plan.kind)
	}
	bad, stored, unknown, suspects := plan.result()
	r.passed, r.requests, r.open = plan.passed, c.budget-plan.budget, make([]bool, len(points))
	pick := func(at []int) (ps []point) {
		for _, i := range at {
			r.open[i] = true
			ps = append(ps, points[i])
		}
		return ps
	}
	bad = bad[len(r.givenUp):]
	r.bad, r.stored, r.unknown, r.suspects = pick(bad), pick(stored), inLogOrder(pick(unknown)), inLogOrder(pick(suspects))
	for _, i := range bad {
		r.answers = append(r.answers, answers[i])
	}
	return r, nil
}

// certain is confirm for what was refused again and again, each time with a failure before the
// receiver took something else: after maxDoubts, which it counts, that is no reason for doubt.
func (s *shard) certain(ctx context.Context, data bool, doubts *int) (clean bool, err error) {
	before := s.q.gate.view().trust()
	taken, clean, err := s.reach(ctx, data)
	if clean = taken && clean; clean || err != nil {
		return clean, err
	}
	before.despiteFailures = true
	if *doubts++; before.broken(s.q.gate.view()) {
		*doubts = 0
	}
	return taken && *doubts >= maxDoubts, nil
}

// failsAlone tries a single sample that failed again, each time after another that was taken
// before: failed if it is taken never and the other always, stuck if that is not so clear.
func (s *shard) failsAlone(ctx context.Context, part *parcel) (fate, error) {
	if !s.hasGood {
		return stuck, nil
	}
	for range poisonAlone - 1 {
		clean, err := s.confirm(ctx, true)
		if err != nil || !clean {
			return stuck, err
		}
		if f, _, err := s.try(ctx, part, once); err != nil || f == settled {
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
func (s *shard) buryEach(points []point, answers []Answer, before int) {
	letters := make([]Letter, 0, len(points))
	for i := range points {
		letters = append(letters, letterOf(points[i], 1, answers[i], wal.Rejected))
	}
	s.giveUp(points, letters, wal.Rejected, before)
}

// bury gives up samples together: one letter stands for all.
func (s *shard) bury(points []point, a Answer, why wal.Reason) {
	if n := count(points); n[classSample]+n[classHistogram] > 0 {
		s.giveUp(points, []Letter{letterOf(points[0], n[classSample]+n[classHistogram], a, why)}, why, 0)
	}
}

// buryOneOf gives up one of the points, for it cannot be told which; the others are stored.
// It is the one that the receiver named when it refused all together, if it did.
func (s *shard) buryOneOf(points []point, a Answer) {
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
