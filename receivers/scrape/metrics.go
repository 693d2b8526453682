package scrape

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are those of scraping. They have the names and meanings that they have in Prometheus.
type metrics struct {
	interval     *prometheus.SummaryVec // by interval
	syncTook     *prometheus.SummaryVec // by job, as are the next four
	syncs        *prometheus.CounterVec
	syncFailed   *prometheus.CounterVec
	targets      *prometheus.GaugeVec
	targetLimit  *prometheus.GaugeVec
	jobs         prometheus.Counter
	jobsFailed   prometheus.Counter
	reloads      prometheus.Counter
	reloadFailed prometheus.Counter

	overTargets, labelLimits, bodySize, samples, buckets prometheus.Counter

	repeated, old, ahead, flushed prometheus.Counter
}

func newMetrics() *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "prometheus_target_" + name, Help: help})
	}
	counters := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "prometheus_target_" + name, Help: help}, []string{"scrape_job"})
	}
	gauges := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "prometheus_target_" + name, Help: help}, []string{"scrape_job"})
	}
	summaries := func(name, help, label string) *prometheus.SummaryVec {
		return prometheus.NewSummaryVec(prometheus.SummaryOpts{
			Name: "prometheus_target_" + name, Help: help, Objectives: map[float64]float64{0.01: 0.001, 0.05: 0.005, 0.5: 0.05, 0.90: 0.01, 0.99: 0.001},
		}, []string{label})
	}
	return &metrics{
		interval:     summaries("interval_length_seconds", "Time between two scrapes of a target.", "interval"),
		syncTook:     summaries("sync_length_seconds", "How long it took to make the targets of a job of what discovery found.", "scrape_job"),
		syncs:        counters("scrape_pool_sync_total", "How often the targets of a job were made of what discovery found."),
		syncFailed:   counters("sync_failed_total", "Targets that could not be made of what discovery found."),
		targets:      gauges("scrape_pool_targets", "Targets of a job that are scraped."),
		targetLimit:  gauges("scrape_pool_target_limit", "The target_limit of a job; 0 if it has none."),
		jobs:         counter("scrape_pools_total", "Attempts to start a job."),
		jobsFailed:   counter("scrape_pools_failed_total", "Attempts to start a job that failed."),
		reloads:      counter("scrape_pool_reloads_total", "Attempts to change a job to another configuration."),
		reloadFailed: counter("scrape_pool_reloads_failed_total", "Attempts to change a job to another configuration that failed."),
		overTargets:  counter("scrape_pool_exceeded_target_limit_total", "How often a job was found to have more targets than its target_limit."),
		labelLimits:  counter("scrape_pool_exceeded_label_limits_total", "Scrapes that failed because of label_limit and the limits of lengths."),
		bodySize:     counter("scrapes_exceeded_body_size_limit_total", "Scrapes that failed because of body_size_limit."),
		samples:      counter("scrapes_exceeded_sample_limit_total", "Scrapes that failed because of sample_limit."),
		buckets:      counter("scrapes_exceeded_native_histogram_bucket_limit_total", "Scrapes that failed because of native_histogram_bucket_limit."),
		repeated:     counter("scrapes_sample_duplicate_timestamp_total", "Samples that were refused since their scrape had one of the same series and time before."),
		old:          counter("scrapes_sample_out_of_order_total", "Samples that were refused since they were too old."),
		ahead:        counter("scrapes_sample_out_of_bounds_total", "Samples that were refused since their time was more than ten minutes ahead."),
		flushed:      counter("scrapes_cache_flush_forced_total", "How often what is remembered of a target was cut since scrapes that failed showed ever new series."),
	}
}

// register registers all.
func (m *metrics) register(reg prometheus.Registerer) error {
	var errs []error
	for _, c := range []prometheus.Collector{
		m.interval, m.syncTook, m.syncs, m.syncFailed, m.targets, m.targetLimit, m.jobs, m.jobsFailed, m.reloads, m.reloadFailed,
		m.overTargets, m.labelLimits, m.bodySize, m.samples, m.buckets, m.repeated, m.old, m.ahead, m.flushed,
	} {
		errs = append(errs, reg.Register(c))
	}
	return errors.Join(errs...)
}

// forget removes a job.
func (m *metrics) forget(job string) {
	m.syncTook.DeleteLabelValues(job)
	m.syncs.DeleteLabelValues(job)
	m.syncFailed.DeleteLabelValues(job)
	m.targets.DeleteLabelValues(job)
	m.targetLimit.DeleteLabelValues(job)
}

// count counts what a pass refused.
func (m *metrics) count(p *pass) {
	if p.sampleLimit != nil {
		m.samples.Inc()
	}
	if p.bucketLimit != nil {
		m.buckets.Inc()
	}
	m.repeated.Add(float64(p.repeated))
	m.old.Add(float64(p.old))
	m.ahead.Add(float64(p.ahead))
}
