package remotewrite

import (
	"math"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/remotewrite/metrics"
	"hwsagent/remotewrite/tenant"
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
	seq    uint64 // of the entry in the window that waits for the outcome
	st, t  int64
	v      float64
	kind   kind
	aux    *pointAux // nil for a float
}

// pointAux has the parts of histograms and exemplars, so that a float stays small.
type pointAux struct {
	h      *histogram.Histogram
	fh     *histogram.FloatHistogram
	labels labels.Labels // of an exemplar
}

// series is a log series as one target sends it: external labels merged,
// write_relabel_configs applied. A target has one for each series of the log, so it is small: it
// refers to the labels of the log, and they are encoded with each request.
type series struct {
	from *wal.Series // the log's series; a cache entry is stale when this differs
	hash uint64      // of the final labels; picks the shard
	form *wire.Form  // the final labels' difference to those of the log; nil if relabelling removed the series

	// owner is set at the default target of an entry with tenants: the tenant that the series
	// belongs to as soon as that has a target; see [seriesCache.at]. Else nil.
	owner *tenant.Tenant

	// newest is the time, in ms, of the newest sample that the target is known to have
	// taken since this process began; or noneTaken, or noneTakenOneRefused. It is not
	// part of what is immutable: it belongs to the goroutine of the series' shard.
	newest int64
	// newestIn is the commit that newest came in; 0 before there was one. While newest is noneTakenOneRefused
	// it is what refusals returns.
	newestIn uint64
}

// Where no sample of a series was taken yet. All are before every sample.
const (
	noneTaken            = math.MinInt64
	noneTakenOneRefused  = math.MinInt64 + 1 // alone: it may have been late
	noneTakenQuarantined = math.MinInt64 + 2 // newestIn is a quarantine.Mark
)

// dropped reports whether write_relabel_configs removed the series.
func (s *series) dropped() bool { return s.form == nil }

// labels returns the final labels as remote write 1.0 sends them.
func (s *series) labels() labels.Labels {
	if s.dropped() {
		return labels.EmptyLabels()
	}
	return s.form.Labels(wire.V1, s.from.Labels)
}

// written is what requests say of the series, which is not dropped.
func (s *series) written() wire.Series {
	w := wire.Series{Labels: s.from.Labels, Form: s.form}
	if about := s.from.About; about != nil {
		w.Meta = &about.Meta
	}
	return w
}

// count counts points.
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
