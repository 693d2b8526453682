package main

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

// recorder is a TSDB that also remembers the metadata written to it, by metric name: the TSDB stores it, but offers no
// way to read it.
type recorder struct {
	*tsdb.DB

	mu       sync.Mutex
	metadata map[string]family
}

// family is one entry of the answer to /api/v1/metadata.
type family struct {
	Type string `json:"type"`
	Unit string `json:"unit"`
	Help string `json:"help"`
}

// Appender returns the appender for the write handler.
func (r *recorder) Appender(ctx context.Context) storage.Appender {
	return &appender{Appender: r.DB.Appender(ctx), of: r}
}

type appender struct {
	storage.Appender
	of *recorder
}

// UpdateMetadata remembers the metadata that it passes on.
func (a *appender) UpdateMetadata(ref storage.SeriesRef, ls labels.Labels, m metadata.Metadata) (storage.SeriesRef, error) {
	a.of.mu.Lock()
	a.of.metadata[ls.Get(labels.MetricName)] = family{Type: string(m.Type), Unit: m.Unit, Help: m.Help}
	a.of.mu.Unlock()
	return a.Appender.UpdateMetadata(ref, ls, m)
}

func (r *recorder) serveMetadata(w http.ResponseWriter, _ *http.Request) {
	data := make(map[string][]family)
	r.mu.Lock()
	for name, f := range r.metadata {
		data[name] = []family{f}
	}
	r.mu.Unlock()
	answer(w, data, nil)
}

// serveExemplars answers as Prometheus does, for a query that is a metric's name; for none,
// those of every series.
func (r *recorder) serveExemplars(w http.ResponseWriter, req *http.Request) {
	q, err := r.ExemplarQuerier(req.Context())
	if err != nil {
		answer(w, nil, err)
		return
	}
	name, err := labels.NewMatcher(labels.MatchEqual, labels.MetricName, req.FormValue("query"))
	if req.FormValue("query") == "" {
		name, err = labels.NewMatcher(labels.MatchNotEqual, labels.MetricName, "")
	}
	if err != nil {
		answer(w, nil, err)
		return
	}
	found, err := q.Select(0, time.Now().Add(24*time.Hour).UnixMilli(), []*labels.Matcher{name})
	answer(w, found, err)
}

func answer(w http.ResponseWriter, data any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": data}) // the client is gone
}
