package remotewrite

import (
	"context"
	"errors"
	"slices"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/split"
	"hwsagent/wal/queue"
)

// A muted series leaves the batches: split.Mutes decides which, and for how long. This file drops its samples and sends the probes.

// Muted describes the series that are not sent at present for one reason.
type Muted struct {
	Reason  string // a key
	Text    string // the reason in words
	Words   string // the receiver's
	Series  int
	Example string // labels of one of them
	Since   time.Time
	Samples uint64 // dropped so far
}

// failing is the reason of series that the receiver fails at.
const failing = "failing"

// mute mutes the series of samples that were proven bad.
func (s *shard) mute(points []point, a client.Answer, why queue.Reason) {
	reason := split.Reason{Name: a.Row.String(), Text: a.Row.Text(), Failed: why == queue.Unconfirmed}
	if reason.Failed {
		reason.Name, reason.Text = failing, "the receiver fails at them, and accepts others"
	} else if a.Reason == client.ReasonFault && !a.OfSeries() {
		return // only these samples are bad
	}
	for _, p := range points {
		s.lane.mutes.Put(p.series.hash, reason, a.Text, p.series.letterLabels, time.Now())
	}
}

// deliverBatch settles every sample of s.batch: first those of ordinary series, then those of muted ones. While new series are muted
// together, they go in a request of their own. The error is ctx's, or one of deliver's.
func (s *shard) deliverBatch(ctx context.Context) error {
	batch, muted := s.batch, []point(nil)
	if s.lane.mutes.Any() {
		is := func(p point) bool { return s.lane.mutes.Has(p.series.hash) }
		muted = slices.DeleteFunc(slices.Clone(batch), func(p point) bool { return !is(p) })
		batch = slices.DeleteFunc(batch, is)
	}
	var fresh []point
	if s.lane.facts.Crowded() {
		isNew := func(p point) bool { return p.series.isNew() }
		fresh = slices.DeleteFunc(slices.Clone(batch), func(p point) bool { return !isNew(p) })
		batch = slices.DeleteFunc(batch, isNew)
	}
	for _, points := range [][]point{batch, fresh} {
		if err := s.deliver(ctx, &parcel{points: points}); err != nil {
			return err
		}
	}
	return s.deliverMuted(ctx, muted) // last: an outage discards the window before, so they are counted once
}

// deliverMuted settles samples of series that were muted when the batch began. A probe is sent alone, before the later samples of its
// series. If the receiver takes it, these are delivered. The error is ctx's, or one of deliver's.
func (s *shard) deliverMuted(ctx context.Context, points []point) error {
	var dropped [2][]point // rejected, unconfirmed
	var released []point
	now := time.Now()
	for _, p := range points {
		if p.kind == exemplarPoint {
			if len(released) > 0 && released[len(released)-1].series == p.series {
				released = append(released, p)
			} else {
				s.lane.lostExemplars(1)
			}
			continue
		}
		fate, why := s.lane.mutes.Meet(p.series.hash, now)
		switch {
		case fate == split.Deliver:
			released = append(released, p)
		case fate == split.Probe:
			if err := s.probe(ctx, p); err != nil {
				return err
			}
		case why.Failed:
			dropped[1] = append(dropped[1], p)
		default:
			dropped[0] = append(dropped[0], p)
		}
	}
	s.drop(dropped[0], queue.Rejected)
	s.drop(dropped[1], queue.Unconfirmed)
	return s.deliver(ctx, &parcel{points: released})
}

// drop settles samples of muted series.
func (s *shard) drop(points []point, why queue.Reason) {
	if len(points) > 0 {
		s.lane.metrics.Failed(count(points))
		s.w.settleAll(points, queue.One(why))
	}
}

// probe sends a sample of a muted series alone. The error is ctx's.
func (s *shard) probe(ctx context.Context, p point) error {
	f, a, err := s.try(ctx, &parcel{role: asPart, points: []point{p}})
	if err != nil && !errors.Is(err, errHeld) {
		return err
	}
	kind, why := split.Failed, queue.Unconfirmed
	switch {
	case err != nil, f == refused, f == tooLarge:
		why = queue.Rejected
		if kind = kindOf(f, a); err != nil {
			kind = split.Failed
		}
	case f == settled:
		s.lane.mutes.Probed(p.series.hash, split.Taken, "", time.Now())
		return nil
	}
	s.lane.mutes.Probed(p.series.hash, kind, a.Text, time.Now())
	s.drop([]point{p}, why)
	return nil
}

// muted returns the muted series by reason.
func (q *Queue) muted() (all []Muted) {
	for _, m := range q.mutes.List() {
		all = append(all, Muted{m.Reason.Name, m.Reason.Text, m.Words, m.Series, m.Example, m.Since, m.Samples})
	}
	slices.SortFunc(all, func(a, b Muted) int { return b.Series - a.Series })
	return all
}
