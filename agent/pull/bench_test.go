package pull

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/agent/inputs"
)

// sink is a log that takes everything, once for each series.
type sink struct{ all []inputs.Sample }

func (s *sink) AppenderV2(context.Context) storage.AppenderV2 { return s }

func (s *sink) Append(_ storage.SeriesRef, ls labels.Labels, _, t int64, v float64, _ *histogram.Histogram, _ *histogram.FloatHistogram, o storage.AOptions) (storage.SeriesRef, error) {
	s.all = append(s.all, inputs.Sample{Labels: ls, T: t, V: v, Family: o.MetricFamilyName, Meta: o.Metadata})
	return storage.SeriesRef(len(s.all)), nil
}

func (*sink) Remember(time.Duration)              {}
func (*sink) Name(storage.SeriesRef) string       { return "" }
func (*sink) Ref(labels.Labels) storage.SeriesRef { return 0 }

func (s *sink) Newest(ref storage.SeriesRef) (ls labels.Labels, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AOptions, ok bool) {
	one := s.all[ref-1]
	o.MetricFamilyName, o.Metadata = one.Family, one.Meta
	return one.Labels, one.T, one.V, nil, nil, o, true
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
