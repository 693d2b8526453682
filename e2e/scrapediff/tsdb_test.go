package scrapediff

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// scrapeByPrometheus returns what a Prometheus stores of the jobs.
func scrapeByPrometheus(t *testing.T, target *scripted, text string) *stored {
	o := tsdb.DefaultOptions()
	o.OutOfOrderTimeWindow = (2 * time.Hour).Milliseconds()
	o.EnableExemplarStorage, o.MaxExemplars = true, 10_000
	quiet := slog.New(slog.DiscardHandler)
	db, err := tsdb.Open(t.TempDir(), quiet, nil, o, nil)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer db.Close()
	cfg, err := config.Load(text, quiet)
	if err != nil {
		t.Error(err)
		return nil
	}
	reg := prometheus.NewRegistry()
	sd, err := discovery.CreateAndRegisterSDMetrics(reg)
	if err != nil {
		t.Error(err)
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	finder := discovery.NewManager(ctx, quiet, reg, sd)
	told := &telling{AppendableV2: db, current: map[string]string{}, about: map[string]string{}}
	m, err := scrape.NewManager(&scrape.Options{DiscoveryReloadOnStartup: true, AppendMetadata: true}, quiet, nil, nil, told, reg)
	if err != nil {
		t.Error(err)
		cancel()
		return nil
	}
	found := map[string]discovery.Configs{}
	for _, s := range cfg.ScrapeConfigs {
		found[s.JobName] = s.ServiceDiscoveryConfigs
	}
	if err := errors.Join(m.ApplyConfig(cfg), finder.ApplyConfig(found)); err != nil {
		t.Error(err)
	}
	var parts sync.WaitGroup
	parts.Go(func() {
		if err := finder.Run(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	parts.Go(func() {
		if err := m.Run(finder.SyncCh()); err != nil {
			t.Error(err)
		}
	})
	until(t, "all pages were scraped by Prometheus", func() bool { return target.done("theirs") })
	m.Stop()
	cancel()
	parts.Wait()
	all := readTSDB(t, db)
	all.about = told.about
	return all
}

// telling is a TSDB that exposes the metadata of a series at each sample, which a TSDB stores but does not let anyone
// read: the last that was not empty.
type telling struct {
	storage.AppendableV2
	mu             sync.Mutex
	current, about map[string]string // by series, by aboutKey
}

// AppenderV2 implements [storage.AppendableV2].
func (a *telling) AppenderV2(ctx context.Context) storage.AppenderV2 {
	return &tellingAppender{a.AppendableV2.AppenderV2(ctx), a}
}

type tellingAppender struct {
	storage.AppenderV2
	of *telling
}

// Append implements [storage.AppenderV2].
func (a *tellingAppender) Append(ref storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AOptions) (storage.SeriesRef, error) {
	ref, err := a.AppenderV2.Append(ref, ls, st, t, v, h, fh, o)
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	series := ls.String()
	if _, known := a.of.current[series]; !known || !o.Metadata.IsEmpty() {
		a.of.current[series] = aboutText(o.Metadata)
	}
	a.of.about[aboutKey(series, t)] = a.of.current[series]
	return ref, err
}

// readTSDB returns everything that a TSDB has.
func readTSDB(t *testing.T, db *tsdb.DB) *stored {
	all := newStored()
	any := labels.MustNewMatcher(labels.MatchRegexp, model.MetricNameLabel, ".+")
	q, err := db.Querier(math.MinInt64, math.MaxInt64)
	if err != nil {
		t.Error(err)
		return all
	}
	defer q.Close()
	set := q.Select(context.Background(), true, nil, any)
	for set.Next() {
		s := set.At()
		it := s.Iterator(nil)
		for kind := it.Next(); kind != chunkenc.ValNone; kind = it.Next() {
			if kind == chunkenc.ValFloat {
				at, v := it.At()
				all.add(s.Labels(), at, number(v))
				continue
			}
			at, h := it.AtFloatHistogram(nil)
			if value.IsStaleNaN(h.Sum) {
				all.add(s.Labels(), at, "stale")
				continue
			}
			all.add(s.Labels(), at, map[bool]string{true: "int ", false: "float "}[kind == chunkenc.ValHistogram]+h.Copy().Compact(0).String()) // the iterator goes on with h
		}
		if err := it.Err(); err != nil {
			t.Error(err)
		}
	}
	if err := set.Err(); err != nil {
		t.Error(err)
	}
	eq, err := db.ExemplarQuerier(context.Background())
	if err != nil {
		t.Error(err)
		return all
	}
	found, err := eq.Select(math.MinInt64, math.MaxInt64, []*labels.Matcher{any})
	if err != nil {
		t.Error(err)
	}
	for _, r := range found {
		for _, e := range r.Exemplars {
			all.exemplar(r.SeriesLabels, e.Labels, e.Value)
		}
	}
	return all
}
