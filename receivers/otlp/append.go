package otlp

import (
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/receivers"
	"hwsagent/receivers/otlp/translation"
)

// appender adds the output of the translation to a batch. Once a limit is exceeded it keeps failing.
type appender struct {
	b    *receivers.Batch
	last labels.Labels // the current series of the batch
	err  error

	points uint64 // points with refused samples
	before uint64 // refused samples of the batch before the current point

	learning *learning // nil if the series are not stored by their bytes
	began    bool      // the latest sample began a series
}

// PointEnds implements [translation.PointEnder].
func (a *appender) PointEnds() {
	if n := a.b.RefusedSamples(); n > a.before {
		a.points, a.before = a.points+1, n
	}
	if a.learning != nil {
		a.learning.point(a.b, !a.began)
	}
}

func (a *appender) failure() error { return a.err }

// Append implements [translation.Sink].
func (a *appender) Append(_ storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AOptions) (storage.SeriesRef, error) {
	if a.series(ls, o) == nil {
		a.err = a.b.Append(st, t, v, h, fh, o.Exemplars...)
	}
	if o.MetricFamilyName == translation.TargetInfo { // of a resource, not of a point
		a.before = a.b.RefusedSamples()
	}
	return 0, a.err
}

// series makes ls the current series of the batch.
func (a *appender) series(ls labels.Labels, o storage.AOptions) error {
	a.began = a.last.IsEmpty() || !labels.Equal(a.last, ls)
	if a.err == nil && a.began {
		if a.err = a.b.Series(ls, o.MetricFamilyName, o.Metadata); a.err == nil {
			a.last = ls
		}
	}
	return a.err
}
