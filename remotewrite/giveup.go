package remotewrite

import (
	"cmp"
	"slices"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/givenup"
	"hwsagent/remotewrite/metrics"
	"hwsagent/remotewrite/reply"
	"hwsagent/wal"
)

// withoutExemplars returns the samples without the exemplars, which have no outcome.
func (s *shard) withoutExemplars(points []point) []point {
	if !slices.ContainsFunc(points, func(p point) bool { return p.kind == exemplarPoint }) {
		return points
	}
	kept := make([]point, 0, len(points))
	for _, p := range points {
		if p.kind != exemplarPoint {
			kept = append(kept, p)
		}
	}
	return kept
}

// apart divides points, in place, into samples and the exemplars that follow them.
func apart(points []point) (samples []point, exemplars map[givenup.Key][]point) {
	exemplars = map[givenup.Key][]point{}
	samples = points[:0]
	for _, p := range points {
		if p.kind != exemplarPoint {
			samples = append(samples, p)
		} else if n := len(samples); n > 0 && samples[n-1].series == p.series {
			key := keyOf(samples[n-1])
			exemplars[key] = append(exemplars[key], p)
		}
	}
	return samples, exemplars
}

// named returns the n points that the text of the refusal names, and settles the others as resent. All were refused
// together.
func (s *shard) named(points []point, n int, a client.Answer) []point {
	rank := func(p point) int { return reply.Names(a.Text, p.series.labels().String(), p.t) }
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(rank(a), rank(b)) })
	stored := points[n:]
	s.w.noteTaken(stored)
	s.w.settleAll(stored, one(wal.Resent))
	return points[:n]
}

// buryEach gives up samples that were refused alone, each with its own answer. before is how many samples of the batch
// were given up earlier: only the first few are logged.
func (s *shard) buryEach(points []point, answers []client.Answer, before int) {
	letters := make([]Letter, 0, len(points))
	for i := range points {
		letters = append(letters, letterOf(points[i], 1, answers[i], wal.Rejected))
	}
	s.giveUp(points, letters, wal.Rejected, before)
}

// bury gives up samples together, with one dead letter for all.
func (s *shard) bury(points []point, a client.Answer, why wal.Reason) {
	if n := count(points); n[metrics.Samples]+n[metrics.Histograms] > 0 {
		s.giveUp(points, []Letter{letterOf(points[0], n[metrics.Samples]+n[metrics.Histograms], a, why)}, why, 0)
	}
}

// giveUp stores the dead letters, then settles the samples.
func (s *shard) giveUp(points []point, letters []Letter, why wal.Reason, before int) {
	if len(points) == 0 {
		return
	}
	s.q.keep(letters, before)
	s.q.metrics.Failed(count(points))
	s.w.remember(points, why)
	s.w.settleAll(points, one(why))
}
