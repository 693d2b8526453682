package otlp

import (
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/receivers"
)

// sink is what the translation appends to.
type sink = storage.AppenderV2

// appender puts what the translation makes into a batch. A bound that is passed stays: the
// translation itself goes on with the next metric after an error.
type appender struct {
	b    *receivers.Batch
	last labels.Labels // named to the batch last
	err  error
}

func (a *appender) failure() error { return a.err }

// Append implements [storage.AppenderV2].
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

// Commit implements [storage.AppenderV2]. The batch is committed by who made it.
func (a *appender) Commit() error { return nil }

// Rollback implements [storage.AppenderV2].
func (a *appender) Rollback() error { return nil }
