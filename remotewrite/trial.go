package remotewrite

import (
	"context"
	"errors"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/quarantine"
	"hwsagent/remotewrite/split"
)

// This file decides whether newcomers that were refused together go into quarantine together: it sends some of their
// samples alone.

// tryNewcomers decides about samples of newcomers that were refused together with the answer a. It reports whether all
// went into quarantine; otherwise the accepted samples leave the parcel. The error is ctx's.
func (s *shard) tryNewcomers(ctx context.Context, l *parcel, a client.Answer) (all bool, err error) {
	r, ok := reasonOf(a)
	if !ok || !s.q.quarantine.knows(r) {
		return false, nil
	}
	first := firstOfEach(l.points)
	_, passed, err := s.trial(ctx, l, first, func(b *quarantine.Book) *quarantine.Trial {
		return b.Try(r, len(first), time.Duration(s.q.sinceBorn()))
	})
	if err != nil || !passed {
		return false, err
	}
	s.intoQuarantine(l.points, r, a)
	return true, nil
}

// tryDoubted does the same for samples in doubt. They are never sent together, so more of them are sent alone.
func (s *shard) tryDoubted(ctx context.Context, l *parcel) error {
	if !s.q.quarantine.known.Load() {
		return nil
	}
	apart := apartOf(l.points, true)
	var newcomers, others []point
	for _, p := range l.points {
		if apart[p.series.hash] == newcomer {
			newcomers = append(newcomers, p)
		} else {
			others = append(others, p)
		}
	}
	first := firstOfEach(newcomers)
	if len(first) == 0 {
		return nil
	}
	a, passed, err := s.trial(ctx, l, first, func(b *quarantine.Book) *quarantine.Trial { return b.TryDoubted(len(first)) })
	if err != nil || !passed {
		return err
	}
	r, _ := reasonOf(a)
	s.intoQuarantine(newcomers, r, a)
	l.points = others
	return nil
}

// trial sends samples of some series alone; first has the first sample of each. It passes if all are refused for known
// reasons, and a control is accepted after them; last is the last refusal. Accepted samples leave the parcel. The error
// is ctx's.
func (s *shard) trial(ctx context.Context, l *parcel, first []point, begin func(*quarantine.Book) *quarantine.Trial) (last client.Answer, passed bool, err error) {
	q := &s.q.quarantine
	var trial *quarantine.Trial
	q.do(func(b *quarantine.Book) { trial = begin(b) })
	for i, ok := trial.Next(); ok; i, ok = trial.Next() {
		f, a, err := s.try(ctx, &parcel{points: []point{first[i]}}, parts)
		switch {
		case err != nil && !errors.Is(err, errHeld):
			return a, false, err
		case err == nil && f == settled:
			l.points = without(l.points, first[i])
		}
		r, known := reasonOf(a)
		if known = known && err == nil && f == refused && q.knows(r); known {
			last = a
			q.do(func(b *quarantine.Book) { b.Stop(r, time.Duration(s.q.sinceBorn())) })
		}
		trial.Tell(known)
	}
	if !trial.Passed() {
		return last, false, nil
	}
	k, _, err := s.control(ctx)
	if errors.Is(err, errHeld) {
		err = nil
	}
	return last, k == split.Took, err
}

// firstOfEach returns the first sample of each series.
func firstOfEach(points []point) []point {
	var first []point
	seen := make(map[uint64]bool)
	for _, p := range points {
		if p.kind != exemplarPoint && !seen[p.series.hash] {
			seen[p.series.hash] = true
			first = append(first, p)
		}
	}
	return first
}
