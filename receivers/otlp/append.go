package otlp

import (
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/receivers"
)

// appender adds the output of the translation to a batch. Once a limit is exceeded it keeps failing.
type appender struct {
	b    *receivers.Batch
	last labels.Labels // the current series of the batch
	err  error
}

func (a *appender) failure() error { return a.err }

// Append implements [translation.Sink].
func (a *appender) Append(_ storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AOptions) (storage.SeriesRef, error) {
	if a.err != nil {
		return 0, a.err
	}
	if a.last.IsEmpty() || !labels.Equal(a.last, ls) {
		if a.err = a.b.Series(ls, o.MetricFamilyName, o.Metadata); a.err != nil {
			return 0, a.err
		}
		a.last = ls
	}
	a.err = a.b.Append(st, t, v, h, fh, o.Exemplars...)
	return 0, a.err
}
