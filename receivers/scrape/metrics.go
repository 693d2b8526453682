package scrape

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"hwsagent/internal/meter"
)

// metrics are the metrics of scraping, with the names and meanings of Prometheus.
type metrics struct {
	set *meter.Set

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
	set := meter.NewSet("prometheus_target_")
	// Metrics that an alert of Prometheus' mixin reads are sent.
	counter := func(name, help string) prometheus.Counter { return set.Counter(meter.NotZero, name, help) }
	rare := func(name, help string) prometheus.Counter { return set.Counter(meter.Shown, name, help) }
	summaries := func(name, help, label string) *prometheus.SummaryVec {
		return set.SummaryVec(meter.Shown, name, help, map[float64]float64{0.01: 0.001, 0.05: 0.005, 0.5: 0.05, 0.90: 0.01, 0.99: 0.001}, label)
	}
	return &metrics{
		set:          set,
		interval:     summaries("interval_length_seconds", "Time between two scrapes of a target.", "interval"),
		syncTook:     summaries("sync_length_seconds", "How long it took to make a job's targets from the discovered ones.", "scrape_job"),
		syncs:        set.CounterVec(meter.Shown, "scrape_pool_sync_total", "How often a job's targets were made from the discovered ones.", "scrape_job"),
		syncFailed:   set.CounterVec(meter.NotZero, "sync_failed_total", "Discovered targets that could not become targets of the job.", "scrape_job"),
		targets:      set.GaugeVec(meter.Sent, "scrape_pool_targets", "Targets of a job that are scraped.", "scrape_job"),
		targetLimit:  set.GaugeVec(meter.Shown, "scrape_pool_target_limit", "The target_limit of a job; 0 if it has none.", "scrape_job"),
		jobs:         rare("scrape_pools_total", "Attempts to start a job."),
		jobsFailed:   rare("scrape_pools_failed_total", "Attempts to start a job that failed."),
		reloads:      rare("scrape_pool_reloads_total", "Attempts to change a job to another configuration."),
		reloadFailed: rare("scrape_pool_reloads_failed_total", "Attempts to change a job to another configuration that failed."),
		overTargets:  counter("scrape_pool_exceeded_target_limit_total", "How often a job was found to have more targets than its target_limit."),
		labelLimits:  counter("scrape_pool_exceeded_label_limits_total", "Scrapes that failed because of label_limit and the limits of lengths."),
		bodySize:     counter("scrapes_exceeded_body_size_limit_total", "Scrapes that failed because of body_size_limit."),
		samples:      counter("scrapes_exceeded_sample_limit_total", "Scrapes that failed because of sample_limit."),
		buckets:      counter("scrapes_exceeded_native_histogram_bucket_limit_total", "Scrapes that failed because of native_histogram_bucket_limit."),
		repeated:     counter("scrapes_sample_duplicate_timestamp_total", "Samples that were refused since their scrape had one of the same series and time before."),
		old:          counter("scrapes_sample_out_of_order_total", "Samples that were refused since they were too old."),
		ahead:        counter("scrapes_sample_out_of_bounds_total", "Samples that were refused since their time was more than ten minutes ahead."),
		flushed:      rare("scrapes_cache_flush_forced_total", "How often a target's remembered series were cut because failed scrapes showed more and more new series."),
	}
}

// sdMetrics are the metrics of discovery, with the names and meanings of Prometheus.
type sdMetrics struct {
	set, of *meter.Set // of adds the label name="scrape"

	discovered, last *prometheus.GaugeVec // by job

	received, applied, fileFailed, httpFailed, dnsLookups, dnsFailed, kubernetesFailed prometheus.Counter

	kubernetesEvents *prometheus.CounterVec // by role and kind

	refreshFailed *prometheus.CounterVec // by kind and job
}

func newSDMetrics() *sdMetrics {
	set, of := meter.NewSet("prometheus_sd_"), meter.NewSet("prometheus_sd_", "name", "scrape")
	counter := func(name, help string) prometheus.Counter { return set.Counter(meter.Shown, name, help) }
	return &sdMetrics{
		set: set, of: of,
		discovered:       of.GaugeVec(meter.Shown, "discovered_targets", "Targets that discovery has found for a job, before relabelling.", "config"),
		last:             of.GaugeVec(meter.Shown, "last_update_timestamp_seconds", "When the targets of a job were last applied.", "config"),
		received:         of.Counter(meter.Shown, "received_updates_total", "Target lists that discovery received."),
		applied:          of.Counter(meter.Shown, "updates_total", "How often discovered targets were applied."),
		fileFailed:       counter("file_read_errors_total", "Files with targets that could not be read."),
		httpFailed:       counter("http_failures_total", "Target lists that could not be fetched over HTTP."),
		dnsLookups:       counter("dns_lookups_total", "Names that were looked up for targets."),
		dnsFailed:        counter("dns_lookup_failures_total", "Names that could not be looked up for targets."),
		kubernetesFailed: counter("kubernetes_failures_total", "Requests to API servers of Kubernetes that failed."),
		kubernetesEvents: set.CounterVec(meter.Shown, "kubernetes_events_total", "Changes that API servers of Kubernetes reported.", "role", "event"),
		refreshFailed:    set.CounterVec(meter.Shown, "refresh_failures_total", "Refreshes that failed, as a whole or for one of their names.", "mechanism", "config"),
	}
}

// forget removes a job's metrics.
func (m *sdMetrics) forget(job string) {
	m.discovered.DeleteLabelValues(job)
	m.last.DeleteLabelValues(job)
	for _, kind := range []string{"http", "dns"} {
		m.refreshFailed.DeleteLabelValues(kind, job)
	}
}

// Metrics returns all metrics that scraping registers.
func Metrics() []meter.Metric {
	sd := newSDMetrics()
	return slices.Concat(newMetrics().set.Metrics(), newSink(nil, nil).set.Metrics(), sd.of.Metrics(), sd.set.Metrics())
}

// forget removes a job's metrics.
func (m *metrics) forget(job string) {
	m.syncTook.DeleteLabelValues(job)
	m.syncs.DeleteLabelValues(job)
	m.syncFailed.DeleteLabelValues(job)
	m.targets.DeleteLabelValues(job)
	m.targetLimit.DeleteLabelValues(job)
}

// count adds the refusals of a pass.
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
