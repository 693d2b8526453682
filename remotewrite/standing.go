package remotewrite

import (
	"context"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/quarantine"
	"hwsagent/remotewrite/reply"
	"hwsagent/remotewrite/split"
)

// What a queue remembers of each series: the newest sample that the target took, or how many it refused alone, with proof, and
// none taken. A refused request is cut by that, so that what the target is likely to refuse costs the others nothing.
//
// Some series are refused for ever: the tenant has reached its limit of series, a label is too long, a type
// conflicts. The samples of such a series leave their batch, and are sent after it:
//
//	batch of 2000 samples ── 1400 of other series ── one request, taken
//	                      └─ 600 of refused series ─ one request, refused
//	                                                 some of the 600, each alone, refused
//	                                                 a proof for all 600 together
//
// The first sample of a series that is taken makes it a series like any other.

// refusedFor is how long it takes until a series that speaks for its samples is asked for alone again.
const refusedFor = time.Minute

// noteTaken notes what the target has of each series. The points are a shard's, whose
// goroutine calls it, and have no outcome yet.
func (w *window) noteTaken(points []point) {
	seq, commit := uint64(0), uint64(0)
	for i := range points {
		p := &points[i]
		if p.kind == exemplarPoint || p.t <= p.series.newest {
			continue
		}
		if p.seq != seq {
			seq, commit = p.seq, w.commitOf(p.seq)
		}
		if p.series.inQuarantine() {
			w.q.leftQuarantine(p.series.hash, quarantine.Mark(p.series.newestIn))
		}
		p.series.newest, p.series.newestIn = p.t, commit
	}
}

// setBack reports whether a point came after what the target has of its series, and is not newer: whatever was stored of the
// others, it was late when it was first sent.
func (w *window) setBack(p point) bool {
	return p.t <= p.series.newest && p.series.newestIn < w.commitOf(p.seq)
}

// standings says of each point of a batch, in the log's order, what is known of it. Series
// that relabelling has made one are one.
func standings(points []point) []split.Standing {
	have := make(map[uint64]int64, len(points)) // what the target has
	many := make(map[uint64]bool)               // several of a series
	for i := range points {
		s := points[i].series
		t, ok := have[s.hash]
		newest := s.newest
		if s.inQuarantine() { // relabelling has made it and another one the same
			newest = noneTaken
		}
		if !ok || newest > t {
			have[s.hash] = newest
		}
		many[s.hash] = ok
	}
	sent := make(map[uint64]int64, len(have)) // the newest before it in the batch
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
		case p.t <= max(has, before), has == noneTakenOneRefused && !many[p.series.hash]:
			is[i] = split.Stale
		case has <= noneTakenOneRefused:
			// Of several of a series that had one refused, the first that is taken is looked for.
			is[i] = split.Unproven
		}
		sent[p.series.hash] = max(before, p.t)
	}
	return is
}

// noteRefused remembers that a sample was refused alone, with proof or in the words of the receiver's database.
func (s *shard) noteRefused(p point, a client.Answer) {
	switch n := p.series.refusals(); {
	case p.series.newest > noneTakenOneRefused, s.q.behind && a.FromDatabase():
		return // the target has samples of the series, or it is in quarantine, or this sample is only too late
	case s.refusedAlone(p, a):
		return
	case a.FromDatabase(), a.Reply().Kind == reply.Failed:
		if p.series.newest == noneTaken { // the target may have newer samples
			p.series.newest = noneTakenOneRefused
		}
		return
	case n < split.RefusalsThatSpeak-1:
		p.series.newest, p.series.newestIn = noneTakenOneRefused, n+1
	default:
		p.series.newestIn = max(split.RefusalsThatSpeak, uint64(s.q.sinceBorn()))
	}
	s.q.refusesSeries.Store(true)
}

// refusals is how many samples of a refused series were refused alone, with proof, as long as they are fewer than
// split.RefusalsThatSpeak; then the age of the queue, in ns, when one was last. It is 0 for any other series.
func (s *series) refusals() uint64 {
	if s.newest != noneTakenOneRefused {
		return 0
	}
	return s.newestIn
}

// isRefused reports whether the target refuses the series, as far as is known.
func (s *series) isRefused() bool { return s.refusals() > 0 }

// speaksForAll reports whether so many samples of a refused series were refused alone that others of it may be
// given up without that.
func (s *series) speaksForAll() bool { return s.refusals() >= split.RefusalsThatSpeak }

// standsApart says why a series' samples are sent after the others of their batch.
type standsApart uint8

const (
	asOthers standsApart = iota
	newcomer             // none was taken, and the target refuses some new series for a reason that is known
	isRefused
)

// deliverBatch brings every sample of s.batch to its outcome: first those of other series, then those of
// newcomers and of refused series, then probes of the quarantine. The error is ctx's.
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

// cutWhereNewcomerReturns puts a batch back from where a newcomer has its second sample, and returns the beginning. The others of the batch
// are sent before the newcomers: were there more, they would overtake what apartOf says of refused series.
func (s *shard) cutWhereNewcomerReturns(points []point) []point {
	seen := make(map[uint64]bool)
	for i, p := range points {
		if p.series.newest != noneTaken || p.kind == exemplarPoint {
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

// apartOf says which series of a batch stand apart, by hash. Series that relabelling has made one stay together. A
// refused series that does not speak for all its samples, and has several of them here, stays with the others. If it did not,
// and the agent were killed when the others are stored and its samples not yet sent, the next process would take its good
// samples for stored, too: their neighbours in the log are.
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
		case newcomers && s.newest == noneTaken && (!again || was == newcomer):
			apart[s.hash] = newcomer
		case newcomers && s.newest != noneTaken:
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
