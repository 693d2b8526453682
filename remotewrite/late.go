package remotewrite

import (
	"log/slog"
	"math"

	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/remotewrite/latebook"
	"hwsagent/remotewrite/wire"
	"hwsagent/wal"
)

// Memory stores the book of late series across restarts; see package latebook.
type Memory = latebook.Store

// noteLateSeries records the newest sample of a series with a late sample.
func (q *Queue) noteLateSeries(s *series) {
	if s.newest() > noneTakenQuarantined {
		q.book.Note(s.hash, latebook.Newest{T: s.known.newest, Commit: s.known.in})
	}
}

// saveLate saves the facts about late series; final says that the queue ends. If it fails, the next call tries again.
func (q *Queue) saveLate(final bool) {
	q.mu.Lock()
	var taken *latebook.Sample
	if q.taken.exists() && q.taken.kind == float {
		taken = &latebook.Sample{Hash: q.taken.series.hash, T: q.taken.t, Bits: math.Float64bits(q.taken.v), Labels: wire.EncodeLabels(q.taken.series.labels())}
	}
	q.mu.Unlock()
	v := q.gate.View()
	still := !v.EmptyPasses && (final || !v.Since.IsZero())
	reach, _ := q.live.source.Reach()
	if err := q.book.Save(reach.Acked.Log, taken, still); err != nil {
		q.log.Warn("Cannot save which series are late: after a start it is found out again", slog.Any("err", err))
	}
}

// recallTaken restores the last accepted sample as one to test with, if the target gets only 1.0. For 2.0 its series
// must be seen first.
func (q *Queue) recallTaken() {
	t := q.book.Taken()
	if t == nil || q.proto.Newer() || len(t.Labels) == 0 {
		return
	}
	ls, err := wire.DecodeLabels(t.Labels)
	if err != nil {
		q.log.Warn("Cannot read which sample was taken last: another one will be found", slog.Any("err", err))
		return
	}
	if f := q.live.cache.tenant; f != nil {
		if owner, mine := f.Sort(labels.NewBuilder(ls)); !mine || owner != nil {
			return // the entry has got tenants since: the sample belongs to another one
		}
	}
	s := &series{from: &wal.Series{Labels: ls}, hash: t.Hash}
	if s.form, _ = wire.NewForms(wire.V1).Of(ls, ls); s.form != nil {
		q.taken = takenPoint(s, t)
	}
}

// recallLate restores the facts about a series that an earlier process knew. The reader calls it before any shard sees
// the series.
func (q *Queue) recallLate(s *series) {
	is, found, taken := q.book.Recall(s.hash)
	if found {
		s.known = &known{newest: is.T, in: is.Commit}
	}
	if taken == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.taken.exists() || q.taken.t < taken.T {
		q.taken = takenPoint(s, taken)
	}
}

func takenPoint(s *series, t *latebook.Sample) point {
	return point{series: s, t: t.T, v: math.Float64frombits(t.Bits)}
}
