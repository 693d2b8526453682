package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/prometheus/prometheus/tsdb"
)

// appended is the additional data of a sample that the TSDB accepted: the TSDB keeps it only in part, and offers no way
// to read it.
type appended struct {
	Labels labels.Labels `json:"labels"`
	T      int64         `json:"t"`  // milliseconds
	ST     int64         `json:"st"` // start timestamp; 0 if unknown
	Type   string        `json:"type"`
	Unit   string        `json:"unit"`
	Help   string        `json:"help"`
}

// tracer is a TSDB that remembers the additional data of its samples.
type tracer struct {
	*tsdb.DB

	mu  sync.Mutex
	all []appended
}

// newOTLPHandler returns Prometheus' receiver of OTLP as Prometheus has it with that section otlp of its configuration,
// and with deltas added up.
func newOTLPHandler(logger *slog.Logger, to *tracer, section string) (http.Handler, error) {
	cfg, err := config.Load("otlp: "+section+"\n", logger)
	if err != nil {
		return nil, fmt.Errorf("read the settings of OTLP: %w", err)
	}
	o := remote.OTLPOptions{ConvertDelta: true, LookbackDelta: 5 * time.Minute}
	return remote.NewOTLPWriteHandler(logger, nil, to, func() config.Config { return *cfg }, o), nil
}

// AppenderV2 returns the appender for the OTLP receiver.
func (r *tracer) AppenderV2(ctx context.Context) storage.AppenderV2 {
	return &tracing{AppenderV2: r.DB.AppenderV2(ctx), of: r}
}

func (r *tracer) serve(w http.ResponseWriter, _ *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	answer(w, r.all, nil)
}

type tracing struct {
	storage.AppenderV2
	of  *tracer
	all []appended
}

// Append remembers the data that it passes on.
func (a *tracing) Append(ref storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AOptions) (storage.SeriesRef, error) {
	ref, err := a.AppenderV2.Append(ref, ls, st, t, v, h, fh, o)
	if err == nil {
		a.all = append(a.all, appended{ls.Copy(), t, st, string(o.Metadata.Type), o.Metadata.Unit, o.Metadata.Help})
	}
	return ref, err
}

// Commit keeps the remembered data if the TSDB accepts the samples.
func (a *tracing) Commit() error {
	err := a.AppenderV2.Commit()
	if err == nil {
		a.of.mu.Lock()
		defer a.of.mu.Unlock()
		a.of.all = append(a.of.all, a.all...)
	}
	return err
}
