package agent

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hwsagent/wal"
)

// metrics are the agent's own, beside those of its parts.
type metrics struct {
	reloadSuccessful prometheus.Gauge
	reloadTime       prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		reloadSuccessful: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hwsagent_config_last_reload_successful",
			Help: "Whether the last load of the configuration succeeded (1) or failed (0).",
		}),
		reloadTime: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hwsagent_config_last_reload_success_timestamp_seconds",
			Help: "When the configuration in force was loaded.",
		}),
	}
	b := Build()
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "hwsagent_build_info",
		Help:        "Always 1; the labels identify the build.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "goversion": b.Go},
	})
	build.Set(1)
	reg.MustRegister(m.reloadSuccessful, m.reloadTime, build)
	return m
}

func (m *metrics) loaded(at time.Time) {
	m.reloadSuccessful.Set(1)
	m.reloadTime.Set(float64(at.UnixMilli()) / 1000)
}

func (m *metrics) reloadFailed() { m.reloadSuccessful.Set(0) }

// accounts shows each target's account and each probe's mishaps as metrics, and how much
// room the log has. What it counts is on disk, so its counters go on after a restart.
type accounts struct {
	agent *Agent

	appended, delivered, filtered, dropped *prometheus.Desc
	pending, missed, pendingBytes, lag     *prometheus.Desc
	skipped, refused                       *prometheus.Desc
	maxBytes, freeBytes                    *prometheus.Desc

	inputSeries, inputFiltered, inputRefused, inputPanics *prometheus.Desc
	twiceSeries, twiceSamples                             *prometheus.Desc
}

func newAccounts(a *Agent) *accounts {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("hwsagent_"+name, help, labels, nil)
	}
	return &accounts{
		agent:        a,
		appended:     desc("target_appended_samples_total", "Samples that the log took since the target was first known.", "target"),
		delivered:    desc("target_delivered_samples_total", "Samples that the receiver accepted.", "target"),
		filtered:     desc("target_filtered_samples_total", "Samples that write_relabel_configs removed.", "target"),
		dropped:      desc("target_dropped_samples_total", "Samples given up, by reason; all but resent are lost.", "target", "reason"),
		pending:      desc("target_pending_samples", "Samples in the log that wait for the target.", "target"),
		missed:       desc("target_missed_samples", "Of the samples that wait for the target, those that follow beside what is fresh.", "target"),
		pendingBytes: desc("target_pending_bytes", "Bytes of the log that wait for the target.", "target"),
		lag:          desc("target_lag_seconds", "Age of the oldest sample that waits; 0 if none does.", "target"),
		skipped:      desc("probe_skipped_rounds_total", "Rounds that did not begin because the one before was not over.", "probe"),
		refused:      desc("probe_refused_samples_total", "Samples that were invalid or that the log did not take.", "probe"),
		maxBytes:     desc("wal_max_bytes", "The log's budget, wal.max_bytes."),
		freeBytes:    desc("wal_free_bytes", "Bytes free on the log's file system."),

		inputSeries:   desc("input_series", "Series that an input brings at present.", "input"),
		inputFiltered: desc("input_filtered_samples_total", "Samples that the metric_relabel_configs of a probe or receiver dropped.", "input"),
		inputRefused:  desc("input_refused_samples_total", "Samples of series beyond the input's max_series.", "input"),
		inputPanics:   desc("input_panics_total", "Panics in an input's work, each of which cost a round or a request of it.", "input"),
		twiceSeries:   desc("duplicate_series", "Series that two inputs bring at present.", "input", "other"),
		twiceSamples:  desc("duplicate_samples_total", "Samples that another input brought of series that are the input's.", "input", "other"),
	}
}

func (c *accounts) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.appended, c.delivered, c.filtered, c.dropped, c.pending, c.missed, c.pendingBytes, c.lag,
		c.skipped, c.refused, c.maxBytes, c.freeBytes,
		c.inputSeries, c.inputFiltered, c.inputRefused, c.inputPanics, c.twiceSeries, c.twiceSamples} {
		ch <- d
	}
}

func (c *accounts) Collect(ch chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	now := time.Now()
	for _, t := range c.agent.targets.all() {
		l := t.reader.Ledger()
		send(c.appended, prometheus.CounterValue, float64(l.Appended), t.name)
		send(c.delivered, prometheus.CounterValue, float64(l.Delivered), t.name)
		send(c.filtered, prometheus.CounterValue, float64(l.Filtered), t.name)
		for r, n := range l.Dropped {
			send(c.dropped, prometheus.CounterValue, float64(n), t.name, wal.Reason(r).String())
		}
		send(c.pending, prometheus.GaugeValue, float64(l.Pending), t.name)
		q := t.queue.Status()
		send(c.missed, prometheus.GaugeValue, float64(q.Missed), t.name)
		s := t.backlog(l, q.DownSince, c.agent.clock.lastStep(), now)
		send(c.pendingBytes, prometheus.GaugeValue, float64(s.bytes), t.name)
		send(c.lag, prometheus.GaugeValue, s.lag.Seconds(), t.name)
	}
	for _, p := range c.agent.runner.Status() {
		send(c.skipped, prometheus.CounterValue, float64(p.Skipped), p.Name)
		send(c.refused, prometheus.CounterValue, float64(p.Refused), p.Name)
	}
	for _, in := range c.agent.inputs.Status() {
		name := in.Kind + " " + in.Name
		send(c.inputSeries, prometheus.GaugeValue, float64(in.Series), name)
		send(c.inputFiltered, prometheus.CounterValue, float64(in.Filtered), name)
		send(c.inputRefused, prometheus.CounterValue, float64(in.Refused), name)
		send(c.inputPanics, prometheus.CounterValue, float64(in.Panics.Count), name)
	}
	send(c.inputPanics, prometheus.CounterValue, float64(c.agent.pulling.Count()), pullName)
	for _, d := range c.agent.inputs.Duplicates() {
		send(c.twiceSeries, prometheus.GaugeValue, float64(d.Series), d.Input, d.Other)
		send(c.twiceSamples, prometheus.CounterValue, float64(d.Samples), d.Input, d.Other)
	}
	s := c.agent.log.Status()
	send(c.maxBytes, prometheus.GaugeValue, float64(s.MaxBytes))
	send(c.freeBytes, prometheus.GaugeValue, float64(s.Free))
}
