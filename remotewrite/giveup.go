package remotewrite

import (
	"slices"

	"hwsagent/remotewrite/client"
	"hwsagent/wal"
)

// withoutExemplars drops exemplars, which are not counted, and returns the samples.
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
