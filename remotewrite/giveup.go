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

// withExemplars returns where to cut points so that the first n, and the exemplars of the last of them, come before the
// cut: remote write 2.0 does not accept exemplars without a sample of their series.
func withExemplars(points []point, n int) int {
	for n > 0 && n < len(points) && points[n].kind == exemplarPoint && points[n].series == points[n-1].series {
		n++
	}
	return n
}

// withoutExemplars returns the samples without the exemplars, which have no outcome and are not sent again.
func (s *shard) withoutExemplars(points []point) []point {
	n := count(points)[metrics.Exemplars]
	if n == 0 {
		return points
	}
	s.q.lostExemplars(n)
	return slices.DeleteFunc(slices.Clone(points), func(p point) bool { return p.kind == exemplarPoint })
}

// onlyExemplars reports whether no point is a sample.
func onlyExemplars(points []point) bool {
	return !slices.ContainsFunc(points, func(p point) bool { return p.kind != exemplarPoint })
}

// lostExemplars counts exemplars that no request will have.
func (q *Queue) lostExemplars(n int) {
	var c metrics.Counts
	c[metrics.Exemplars] = n
	q.metrics.Failed(c)
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
	points = namedLast(points, a)
	stored := points[:len(points)-n]
	s.noteTaken(stored)
	s.w.settleAll(stored, queue.One(queue.Resent))
	return points[len(points)-n:]
}

// namedLast sorts points such that those which the text of a refusal names come last.
func namedLast(points []point, a client.Answer) []point {
	rank := func(p point) int { return reply.Names(a.Text, p.series.labels().String(), p.t) }
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(rank(b), rank(a)) })
	return points
}

// bury gives up samples with one dead letter for all: it stores the letter, then settles the samples.
func (s *shard) bury(points []point, a client.Answer, why queue.Reason) {
	c := count(points)
	if n := c[metrics.Samples] + c[metrics.Histograms]; n > 0 {
		s.q.keep(letterOf(points[0], n, a, why))
		s.q.metrics.Failed(c)
		s.w.remember(points, why)
		s.w.settleAll(points, queue.One(why))
	}
}
