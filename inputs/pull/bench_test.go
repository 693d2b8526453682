package pull

import (
	"context"
	"net/http"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/storage"
)

// sink is a log that takes everything.
type sink struct{ next storage.SeriesRef }

func (s *sink) AppenderV2(context.Context) storage.AppenderV2 { return s }

func (s *sink) Append(ref storage.SeriesRef, _ labels.Labels, _, _ int64, _ float64, _ *histogram.Histogram, _ *histogram.FloatHistogram, _ storage.AOptions) (storage.SeriesRef, error) {
	if ref == 0 {
		s.next++
		ref = s.next
	}
	return ref, nil
}
func (s *sink) Commit() error   { return nil }
func (s *sink) Rollback() error { return nil }

func counterOptions() storage.AOptions {
	return storage.AOptions{MetricFamilyName: "node_cpu_seconds_total", Metadata: metadata.Metadata{Type: "counter", Help: "Seconds."}}
}

// discard counts what is answered.
type discard struct {
	header http.Header
	n      int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(p []byte) (int, error) { d.n += len(p); return len(p), nil }
