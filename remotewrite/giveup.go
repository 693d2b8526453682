package remotewrite

import (
	"cmp"
	"slices"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/givenup"
	"hwsagent/remotewrite/metrics"
	"hwsagent/remotewrite/reply"
	"hwsagent/wal/queue"
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
	s.noteTaken(stored)
	s.w.settleAll(stored, one(queue.Resent))
	return points[:n]
}

// bury gives up samples with one dead letter for all: it stores the letter, then settles the samples.
func (s *shard) bury(points []point, a client.Answer, why queue.Reason) {
	c := count(points)
	if n := c[metrics.Samples] + c[metrics.Histograms]; n > 0 {
		s.q.keep(letterOf(points[0], n, a, why))
		s.q.metrics.Failed(c)
		s.w.remember(points, why)
		s.w.settleAll(points, one(why))
	}
}
