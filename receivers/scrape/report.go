package scrape

import (
	"math"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
)

// reported is a series that describes the outcome of each scrape. Names and texts are Prometheus'
// (https://prometheus.io/docs/concepts/jobs_instances/).
type reported struct{ name, unit, help string }

// reportSeries returns the reported series in the order of the values in report.
func reportSeries() []reported {
	return []reported{
		{"up", "targets", "Health of the scrape target. 1 means the target is healthy, 0 if the scrape failed."},
		{"scrape_duration_seconds", "seconds", "Duration of the last scrape in seconds."},
		{"scrape_samples_scraped", "samples", "Number of samples last scraped."},
		{"scrape_samples_post_metric_relabeling", "samples", "Number of samples remaining after metric relabeling was applied."},
		{"scrape_series_added", "series", "Number of series in the last scrape."},
		// Added by extra_scrape_metrics.
		{"scrape_timeout_seconds", "seconds", "The configured scrape timeout for a target."},
		{"scrape_sample_limit", "samples", "The configured sample limit for a target. Returns zero if there is no limit configured."},
		{"scrape_body_size_bytes", "bytes", "The uncompressed size of the last scrape response, if successful. Scrapes failing because body_size_limit is exceeded report -1, other scrape failures report 0."},
	}
}

// always is the number of reportSeries that every scrape has.
const always = 5

// outcome is the result of a scrape.
type outcome struct {
	scraped int // samples that the target showed, accepted or not
	kept    int // samples left by metric_relabel_configs
	added   int // series that the previous scrape did not have
	bytes   int // of the page; -1 if it exceeded body_size_limit
	took    time.Duration
	err     error
}

// report holds the reported series of one target.
type report struct {
	series []reportedSeries
}

type reportedSeries struct {
	reported
	labels labels.Labels
	ref    storage.SeriesRef
}

func newReport(t *target, extra bool) *report {
	r := &report{}
	for i, of := range reportSeries() {
		if i >= always && !extra {
			break
		}
		b := labels.NewBuilder(labels.FromStrings(model.MetricNameLabel, of.name))
		t.public.Range(func(l labels.Label) {
			b.Del(model.ExportedLabelPrefix + l.Name) // as in Prometheus, even if the target has that label
			b.Set(l.Name, l.Value)
		})
		r.series = append(r.series, reportedSeries{reported: of, labels: b.Labels()})
	}
	return r
}

// append adds the outcome of a scrape at t.
func (r *report) append(a *appender, t int64, o outcome, l *loop) error {
	up := 0.0
	if o.err == nil {
		up = 1
		a.filtered(o.scraped - o.kept)
	}
	return r.values(a, t, false, []float64{
		up, o.took.Seconds(), float64(o.scraped), float64(o.kept), float64(o.added),
		l.target.timeout.Seconds(), float64(l.limits.samples), float64(o.bytes),
	})
}

// end marks the series as stale.
func (r *report) end(a *appender, t int64) error {
	stale := math.Float64frombits(value.StaleNaN)
	return r.values(a, t, true, []float64{stale, stale, stale, stale, stale, stale, stale, stale})
}

func (r *report) values(a *appender, t int64, rejectOld bool, values []float64) error {
	for i := range r.series {
		s := &r.series[i]
		ref, err := a.Append(s.ref, s.labels, 0, t, values[i], nil, nil, storage.AOptions{
			MetricFamilyName: s.name, RejectOutOfOrder: rejectOld,
			Metadata: metadata.Metadata{Type: model.MetricTypeGauge, Unit: s.unit, Help: s.help},
		})
		switch {
		case err == nil:
			s.ref = ref
		case !needless(err):
			return err
		}
	}
	return nil
}
