package receivertest

import (
	"context"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
)

// Sink is a log that accepts every sample and keeps only the series, so that a test can count what a receiver allocates. The zero value is
// ready. It is not safe for concurrent use.
type Sink struct {
	appended int
	series   []labels.Labels // by reference
}

// Appended returns how many samples have come.
func (s *Sink) Appended() int { return s.appended }

// AppenderV2 implements [storage.AppendableV2].
func (s *Sink) AppenderV2(context.Context) storage.AppenderV2 { return s }

// Labels implements [receivers.Log].
func (s *Sink) Labels(ref storage.SeriesRef) labels.Labels { return s.series[ref-1] }

// Append implements [storage.AppenderV2].
func (s *Sink) Append(ref storage.SeriesRef, ls labels.Labels, _, _ int64, _ float64, _ *histogram.Histogram, _ *histogram.FloatHistogram, _ storage.AOptions) (storage.SeriesRef, error) {
	if s.appended++; ref == 0 {
		s.series = append(s.series, ls)
		ref = storage.SeriesRef(len(s.series))
	}
	return ref, nil
}

// Commit implements [storage.AppenderV2].
func (s *Sink) Commit() error { return nil }

// Rollback implements [storage.AppenderV2].
func (s *Sink) Rollback() error { return nil }
