package remotewrite

import (
	"context"
	"errors"
	"slices"

	"hwsagent/remotewrite/client"
	"hwsagent/wal"
)

// apart is what came of taking a batch apart. The samples that were taken are settled.
type apart struct {
	points               []point
	givenUp              []point // bad, and settled as well
	bad, stored, unknown []point // in no particular order among each other
	suspects             []point // likewise; at least one is bad, the others are stored
	doubted              []point // sent together, all of them or none are stored
	answers              []client.Answer
	passed               int
	requests             int    // how many it took; those that are kept for a proof count
	proofs               int    // how many of these were for proofs
	held                 bool   // it ended early: nothing shows that the samples are at fault
	open                 []bool // by index in points: the sample has no outcome
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

// pay adds up what taking a batch apart has cost and brought so far.
type pay struct{ requests, delivered int }

func (p *pay) add(r *apart) {
	p.requests += r.requests - r.proofs
	p.delivered += r.passed
}

// goodEnough reports whether so much was delivered that the samples that are left are worth another
// 64 requests: one sample for three requests, proofs aside.
func (p *pay) goodEnough() bool { return 3*p.delivered >= p.requests }

// cutting is how a batch is taken apart.
type cutting struct {
	mode      mode
	known     bool // as of newIsolation
	budget    int  // in requests
	rollsBack bool // do not find out what the receiver does with the good part
	resent    bool // samples may be stored already
	// unproven: the target has taken no sample of their series since the process began. None of them is put
	// off until another one is taken, as perhaps all of them are bad.
	unproven bool
}

// cutter carries out an isolation.
type cutter struct {
	s       *shard
	c       cutting
	plan    *isolation
	points  []point
	answers map[int]client.Answer // by index in points, of samples that were refused alone
	last    client.Answer         // the last refusal
	r       *apart
	reserve int // of the budget, for a proof

	// contrasted: the receiver's database has spoken, or another sample was taken, now or in a proof within
	// the last minute. Before that the refusals may have nothing to do with the samples.
	contrasted bool
}

// cut takes a batch apart. What was refused alone of parts is given up at once: were the
// agent stopped or killed before that, with what comes after it stored, it would be refused like
// what is stored, and pass for it. The error is ctx's.
func (s *shard) cut(ctx context.Context, points []point, c cutting) (*apart, error) {
	points, spans := rounds(points)
	hashes := make([]uint64, len(points))
	for i := range points {
		hashes[i] = points[i].series.hash
	}
	kind := s.q.kind()
	if c.mode == once || c.rollsBack {
		kind = rollsBack // a failure says nothing about what is kept
	}
	x := &cutter{s: s, c: c, points: points, answers: make(map[int]client.Answer), r: &apart{points: points}, contrasted: c.unproven && s.q.proofTurns() == quickTurns}
	if c.mode == parts && c.budget == isolateBudget {
		if x.reserve = quickCost; s.q.proofTurns() != quickTurns {
			x.reserve = proofCost
		}
	}
	x.r.proofs = x.reserve
	x.plan = newIsolation(kind, hashes, spans, c.known, c.budget-x.reserve)
	x.plan.doubt = c.mode == once
	for more := true; more && !x.r.held; {
		var err error
		if more, err = x.next(ctx); err != nil {
			return nil, err
		}
	}
	if c.mode == parts && x.plan.kind != kind && !x.plan.tooOld {
		s.q.learn(x.plan.kind)
	}
	return x.result(), nil
}

// next sends the next part. False means that there is none.
func (x *cutter) next(ctx context.Context) (more bool, err error) {
	if x.plan.hopeless() && (x.c.mode == once || !x.contrasted) {
		if x.c.mode == once {
			return false, nil
		}
		x.contrasted, _, err = x.s.control(ctx, x.last)
		x.r.held = !x.contrasted
		return true, err
	}
	x.buryProven()
	at, ok := x.plan.next()
	if !ok {
		return false, nil
	}
	part := parcel{points: make([]point, 0, len(at))}
	for _, i := range at {
		part.points = append(part.points, x.points[i])
	}
	f, a, err := x.s.try(ctx, &part, x.c.mode)
	if f == settled && err == nil {
		x.plan.accepted()
		return true, nil
	}
	if len(part.points) < len(at) {
		at = x.plan.tookAlone(func(i int) bool { return !slices.ContainsFunc(part.points, x.points[i].same) })
	}
	switch {
	case errors.Is(err, errDoubted):
		x.r.held = true
		return true, nil
	case err != nil:
		return false, err
	}
	x.last = a
	switch {
	case f == stuck && x.c.mode == parts:
		err = x.stuck(ctx, &part)
	case x.c.mode == parts && x.plan.resting && part.unsure:
		x.r.doubted = inLogOrder(part.points)
		x.plan.leaveRest()
	case len(at) > 1:
		x.refused()
	case x.c.mode == parts:
		err = x.refusedAlone(ctx, at[0], &part)
		if errors.Is(err, errDoubted) {
			x.r.held, err = true, nil
		}
	default:
		err = x.failedAlone(ctx, at[0], &part)
	}
	return true, err
}

// stuck looks for samples that make the receiver fail in a part of a refused batch. If that is not decided,
// the batch is put together again. The error is ctx's.
func (x *cutter) stuck(ctx context.Context, part *parcel) error {
	done, err := x.s.takeApart(ctx, part, x.last)
	if done && err == nil {
		x.plan.accepted()
		return nil
	}
	x.plan.tookAlone(func(i int) bool { return !slices.ContainsFunc(part.points, x.points[i].same) })
	x.s.q.gate.doubtEmpty()
	x.r.held = true
	return err
}

func (x *cutter) refused() { x.plan.refused(x.last.String(), saysLate(x.last), saysTooOld(x.last)) }

// buryProven gives up what was refused alone and is not given up yet.
func (x *cutter) buryProven() {
	if x.c.mode != parts {
		return
	}
	for _, i := range x.plan.bad[len(x.r.givenUp):] {
		x.s.buryEach(x.points[i:i+1], []client.Answer{x.answers[i]}, len(x.r.givenUp))
		x.r.givenUp = append(x.r.givenUp, x.points[i])
	}
}

// refusedAlone finds out whether the sample i, which was refused alone, is at fault. The error is ctx's
// or errDoubted.
func (x *cutter) refusedAlone(ctx context.Context, i int, part *parcel) error {
	switch {
	case final(x.last, part.points...):
	case x.plan.passed == 0 && !(x.contrasted && x.c.unproven) && !x.plan.probing && x.plan.later():
		return nil // if another one is taken first, that is contrast
	default:
		c, err := x.s.contrast(ctx, part, x.last)
		if x.reserve == proofCost {
			x.reserve, c.requests = quickCost, quickCost
		}
		x.plan.spent(c.requests)
		x.r.proofs += c.requests
		switch {
		case err != nil:
			return err
		case c.blame == blameTarget:
			x.r.held = true
			return nil
		case c.blame == blameNone:
			x.plan.accepted()
			return nil
		}
		x.last = c.answer
	}
	if !final(x.last, part.points...) && x.c.mode == parts {
		x.s.noteRefusedSeries(part.points[0])
	}
	x.contrasted, x.answers[i] = true, x.last
	if x.c.resent {
		stored, n, err := x.s.storedAsLate(ctx, part.points[0], x.last)
		if err != nil {
			return err
		}
		if stored {
			x.s.w.noteTaken(part.points)
			x.s.w.settleAll(part.points, one(wal.Resent))
			x.plan.spent(-2) // as it pays: those beside it are likely to be stored, too
			x.plan.found()
			return nil
		}
		x.plan.spent(n)
	}
	x.refused()
	return nil
}

// failedAlone finds out whether the receiver fails at the sample i of a stuck batch, which failed alone.
// The error is ctx's.
func (x *cutter) failedAlone(ctx context.Context, i int, part *parcel) error {
	if !x.s.hasGood && x.plan.later() {
		return nil // until another was taken, nothing shows that it is to blame
	}
	x.answers[i] = x.last
	x.plan.spent(2 * (poisonAlone - 1))
	f, err := x.s.failsAlone(ctx, part)
	switch {
	case err != nil:
		return err
	case f == settled:
		x.plan.accepted()
	case f == stuck:
		x.plan.giveUp()
	default:
		x.refused()
	}
	return nil
}

// result sums up.
func (x *cutter) result() *apart {
	r, plan := x.r, x.plan
	r.passed, r.requests, r.open = plan.passed, x.c.budget-plan.budget, make([]bool, len(x.points))
	if r.held {
		for i, p := range x.points {
			r.open[i] = !plan.took[i] && !slices.ContainsFunc(r.givenUp, p.same) && !slices.ContainsFunc(r.doubted, p.same)
		}
		return r
	}
	bad, stored, unknown, suspects := plan.result()
	pick := func(at []int) (ps []point) {
		for _, i := range at {
			r.open[i] = true
			ps = append(ps, x.points[i])
		}
		return ps
	}
	bad = bad[len(r.givenUp):]
	r.bad, r.stored, r.unknown, r.suspects = pick(bad), pick(stored), inLogOrder(pick(unknown)), inLogOrder(pick(suspects))
	for _, i := range bad {
		r.answers = append(r.answers, x.answers[i])
	}
	return r
}
