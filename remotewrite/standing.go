package remotewrite

import (
	"context"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/quarantine"
	"hwsagent/remotewrite/split"
)

// A queue remembers for each series the newest sample that the target accepted; or, if it accepted none, how many it
// refused alone, with proof. A refused request is divided by that, so that samples which the target is likely to refuse
// cost the others nothing.
//
// Some series are always refused: the tenant has reached its limit of series, a label is too long, a type
// conflicts. The samples of these series leave their batch, and are sent after it:
//
//	batch of 2000 samples ── 1400 of other series ── one request, accepted
//	                      └─ 600 of refused series ─ one request, refused
//	                                                 some of the 600, each alone, refused
//	                                                 a proof for all 600 together
//
// Its first accepted sample makes a series like any other.

// refusedFor is how long a refused series may speak for all its samples before one of them is sent alone again.
const refusedFor = time.Minute

// noteTaken records the newest accepted sample of each series. The points have no outcome yet.
func (s *shard) noteTaken(points []point) {
	seq, commit := uint64(0), uint64(0)
	for i := range points {
		p := &points[i]
		if p.kind == exemplarPoint || p.t <= p.series.newest() {
			continue
		}
		if p.seq != seq {
			seq, commit = p.seq, s.w.commitOf(p.seq)
		}
		if p.series.inQuarantine() {
			s.q.leftQuarantine(p.series.hash, quarantine.Mark(p.series.known.in))
		}
		if s.newest == nil || s.newest.newest != p.t || s.newest.in != commit {
			s.newest = &known{newest: p.t, in: commit}
		}
		p.series.known = s.newest
	}
}

// setBack reports whether a point came after the newest accepted sample of its series, but is not newer: whichever
// samples are stored, it was late when it was first sent.
func (w *window) setBack(p point) bool {
	return p.t <= p.series.newest() && p.series.newestIn() < w.commitOf(p.seq)
}

// standings returns what is known about each point of a batch, in the log's order. Series that relabelling merged count
// as one.
func standings(points []point) []split.Standing {
	have := make(map[uint64]int64, len(points)) // newest accepted time, by series
	many := make(map[uint64]bool)               // whether the batch has several samples, by series
	for i := range points {
		s := points[i].series
		t, ok := have[s.hash]
		newest := s.newest()
		if s.inQuarantine() { // relabelling merged it with another series
			newest = noneTaken
		}
		if !ok || newest > t {
			have[s.hash] = newest
		}
		many[s.hash] = ok
	}
	sent := make(map[uint64]int64, len(have)) // newest time so far in the batch, by series
	is := make([]split.Standing, len(points))
	for i := range points {
		p := &points[i]
		has, before := have[p.series.hash], int64(noneTaken)
		if t, ok := sent[p.series.hash]; ok {
			before = t
		}
		switch {
		case has == noneTakenOneRefused && p.series.isRefused() && (p.series.speaksForAll() || !many[p.series.hash]):
			is[i] = split.Refused
		case p.t <= max(has, before):
			is[i] = split.Stale
		case has <= noneTakenOneRefused:
			// A late sample of the series says nothing about a newer one.
			is[i] = split.Unproven
		}
		sent[p.series.hash] = max(before, p.t)
	}
	return is
}

// noteRefused records that a sample was refused alone, with proof or in the words of the receiver's database.
func (s *shard) noteRefused(p point, a client.Answer) {
	switch n := p.series.refusals(); {
	case p.series.newest() > noneTakenOneRefused, s.q.behind && a.AboutTime():
		return // the target has samples of the series, or it is in quarantine, or this sample is only too late
	case s.refusedAlone(p, a):
		return
	case a.AboutTime(), a.Verdict == client.Retry:
		if p.series.newest() == noneTaken { // the target may have newer samples
			p.series.known = &known{newest: noneTakenOneRefused}
		}
		return
	case n < split.RefusalsThatSpeak-1:
		p.series.known = &known{newest: noneTakenOneRefused, in: n + 1}
	default:
		p.series.known.in = max(split.RefusalsThatSpeak, uint64(s.q.sinceBorn()))
	}
	s.q.refusesSeries.Store(true)
}

// refusals returns how many samples of a refused series were refused alone, with proof, while they are fewer than
// split.RefusalsThatSpeak; after that, the age of the queue, in ns, at the last one. It is 0 for any other series.
func (s *series) refusals() uint64 {
	if s.newest() != noneTakenOneRefused {
		return 0
	}
	return s.known.in
}

// isRefused reports whether the target is known to refuse the series.
func (s *series) isRefused() bool { return s.refusals() > 0 }

// speaksForAll reports whether so many samples of a refused series were refused alone that its other samples may be
// given up without being sent alone.
func (s *series) speaksForAll() bool { return s.refusals() >= split.RefusalsThatSpeak }

// standsApart is why the samples of a series are sent after the others of their batch.
type standsApart uint8

const (
	asOthers standsApart = iota
	newcomer             // no sample was accepted, and the target refuses some new series for a known reason
	isRefused
)

// deliverBatch settles every sample of s.batch: first those of ordinary series, then those of newcomers and of refused
// series, then probes of the quarantine. The error is ctx's, or one of deliver's.
func (s *shard) deliverBatch(ctx context.Context, stored bool) error {
	var probes []point
	if s.q.quarantine.any.Load() {
		s.batch, probes = s.leaveOut(s.batch, stored)
	}
	var apart map[uint64]standsApart
	newcomers := s.q.quarantine.known.Load() && !stored
	if newcomers {
		s.batch = s.cutWhereNewcomerReturns(s.batch)
	}
	if newcomers || !stored && s.q.refusesSeries.Load() {
		apart = apartOf(s.batch, newcomers)
	}
	if len(apart) == 0 {
		if err := s.deliver(ctx, &parcel{points: s.batch, stored: stored}); err != nil {
			return err
		}
		return s.probeEach(ctx, probes)
	}
	s.aside = s.batch
	for what := asOthers; what <= isRefused; what++ {
		var mine, rest []point
		for _, p := range s.aside {
			if apart[p.series.hash] == what {
				mine = append(mine, p)
			} else {
				rest = append(rest, p)
			}
		}
		s.aside = rest
		if err := s.deliver(ctx, &parcel{points: mine, apart: what}); err != nil {
			s.aside = nil
			return err
		}
	}
	return s.probeEach(ctx, probes)
}

// cutWhereNewcomerReturns cuts a batch where a newcomer has its second sample: it puts the rest back and returns the
// beginning. Newcomers are sent after the others of their batch, so with several samples they would have the problem
// that apartOf describes for refused series.
func (s *shard) cutWhereNewcomerReturns(points []point) []point {
	seen := make(map[uint64]bool)
	for i, p := range points {
		if p.series.newest() != noneTaken || p.kind == exemplarPoint {
			continue
		}
		if seen[p.series.hash] {
			s.putBack(points[i:])
			return points[:i]
		}
		seen[p.series.hash] = true
	}
	return points
}

// apartOf returns which series of a batch stand apart, by hash. Series that relabelling merged stay together. A refused
// series with several samples here that does not speak for all of them stays with the others. Otherwise, if the agent
// were killed after the others were stored and before its samples were sent, the next process would take its good
// samples for stored, because their neighbours in the log are.
func apartOf(points []point, newcomers bool) map[uint64]standsApart {
	apart := make(map[uint64]standsApart)
	for i := range points {
		s := points[i].series
		was, again := apart[s.hash]
		switch {
		case s.isRefused():
			if apart[s.hash] = isRefused; again && !s.speaksForAll() {
				apart[s.hash] = asOthers
			}
		case newcomers && s.newest() == noneTaken && (!again || was == newcomer):
			apart[s.hash] = newcomer
		case newcomers && s.newest() != noneTaken:
			apart[s.hash] = asOthers
		}
	}
	for hash, what := range apart {
		if what == asOthers {
			delete(apart, hash)
		}
	}
	return apart
}
