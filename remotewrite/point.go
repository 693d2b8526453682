package remotewrite

import (
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
	doubt  bool      // it may be stored already
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

	entry    uint32 // the last one of which the window held a sample; see heldSamples
	late     bool   // first logged after the queue began
	rejected uint8  // samples rejected in unknown words since one was taken, at most split.MostRejected; as taken
	taken    bool   // the target has accepted a sample; belongs to the goroutine of the series' shard
}

// isNew reports whether the series was first logged after the queue began, and no sample of it was accepted.
func (s *series) isNew() bool { return s.late && !s.taken }

// dropped reports whether write_relabel_configs removed the series.
func (s *series) dropped() bool { return s.form == nil }

// labels returns the final labels as remote write 1.0 sends them.
func (s *series) labels() labels.Labels {
	if s.dropped() {
		return labels.EmptyLabels()
	}
	return s.form.Labels(wire.V1, s.from.AppendLabels(nil))
}

// written returns what requests contain about the series, with its labels appended to ls. The series must not be dropped.
func (s *series) written(ls []labels.Label) wire.Series {
	return wire.Series{Labels: s.from.AppendLabels(ls), Form: s.form, Meta: &s.from.About.Meta}
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
