package remotewrite

import (
	"math"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/remotewrite/metrics"
	"hwsagent/remotewrite/wire"
	"hwsagent/wal"
)

// kind is the kind of a point.
type kind uint8

const (
	float kind = iota
	intHistogram
	floatHistogram
	exemplarPoint
)

// point is one sample or exemplar on its way to a target. A batch owns its points: they share
// no memory with the log's buffers.
type point struct {
	series *series
	seq    uint64 // of the window's entry that waits for the outcome
	st, t  int64
	v      float64
	kind   kind
	aux    *pointAux // nil for a float
}

// exists reports whether p is a point, and not the zero value.
func (p *point) exists() bool { return p.series != nil }

// pointAux holds the parts of histograms and exemplars, so that a float stays small.
type pointAux struct {
	h      *histogram.Histogram
	fh     *histogram.FloatHistogram
	labels labels.Labels // of an exemplar
}

// series is a log series as one target sends it: external labels merged, write_relabel_configs applied. A target has
// one for each series of the log, so it is small: it refers to the log's labels, and each request encodes them.
type series struct {
	from *wal.Series // the log's series; a cache entry is stale when this differs
	hash uint64      // of the final labels; picks the shard
	form *wire.Form  // the final labels as a difference to the log's; nil if relabelling removed the series

	// known belongs to the goroutine of the series' shard. nil: noneTaken.
	known *known
}

// known is what a target is known to have of a series. Samples of one scrape have the same time and commit, so series share it
// once the target has accepted a sample: it is immutable then. In the other states it belongs to one series, and may change.
type known struct {
	// newest is the time, in ms, of the newest sample that the target is known to have accepted, or one of the
	// constants below. A series with late samples keeps it across restarts.
	newest int64
	// in is the commit of newest, and 0 without one. While newest is noneTakenOneRefused, it is the result of
	// refusals.
	in uint64
}

// Values of newest while no sample of the series was accepted. They are before every sample.
const (
	noneTaken            = math.MinInt64
	noneTakenOneRefused  = math.MinInt64 + 1 // a sample was refused alone: it may have been late
	noneTakenQuarantined = math.MinInt64 + 2 // in is a quarantine.Mark
)

// newest returns known.newest.
func (s *series) newest() int64 {
	if s.known == nil {
		return noneTaken
	}
	return s.known.newest
}

// newestIn returns known.in.
func (s *series) newestIn() uint64 {
	if s.known == nil {
		return 0
	}
	return s.known.in
}

// dropped reports whether write_relabel_configs removed the series.
func (s *series) dropped() bool { return s.form == nil }

// labels returns the final labels as remote write 1.0 sends them.
func (s *series) labels() labels.Labels {
	if s.dropped() {
		return labels.EmptyLabels()
	}
	return s.form.Labels(wire.V1, s.from.Labels)
}

// written returns what requests contain about the series. The series must not be dropped.
func (s *series) written() wire.Series {
	w := wire.Series{Labels: s.from.Labels, Form: s.form}
	if about := s.from.About; about != nil {
		w.Meta = &about.Meta
	}
	return w
}

// count counts points by kind.
func count(points []point) (c metrics.Counts) {
	for i := range points {
		switch points[i].kind {
		case float:
			c[metrics.Samples]++
		case exemplarPoint:
			c[metrics.Exemplars]++
		default:
			c[metrics.Histograms]++
		}
	}
	return c
}
