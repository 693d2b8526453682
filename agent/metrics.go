package agent

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hwsagent/agent/status"
	"hwsagent/internal/meter"
	"hwsagent/internal/version"
	"hwsagent/wal/queue"
)

// metrics are the agent's own metrics, beside those of its parts.
type metrics struct {
	set              *meter.Set
	reloadSuccessful prometheus.Gauge
	reloadTime       prometheus.Gauge
	listProblems     prometheus.Gauge
}

func newMetrics() *metrics {
	set := meter.NewSet("hwsagent_")
	m := &metrics{
		set:              set,
		reloadSuccessful: set.Gauge(meter.Sent, "config_last_reload_successful", "1 if the last load of the configuration succeeded, else 0."),
		reloadTime:       set.Gauge(meter.Sent, "config_last_reload_success_timestamp_seconds", "When the configuration in force was loaded."),
	}
	m.listProblems = set.Gauge(meter.NotZero, "target_list_problems", "Files of targets of probes that are broken, and targets in them that cannot be read.")
	b := version.Build()
	set.GaugeVec(meter.Sent, "build_info", "Always 1; the labels identify the build.", "version", "revision", "goversion").
		WithLabelValues(b.Version, b.Revision, b.Go).Set(1)
	return m
}

func (m *metrics) loaded(at time.Time) {
	m.reloadSuccessful.Set(1)
	m.reloadTime.Set(float64(at.UnixMilli()) / 1000)
}

func (m *metrics) reloadFailed() { m.reloadSuccessful.Set(0) }

// accounts exposes each target's account, each probe's failures and the free space of the log as metrics. Counters
// start at 0 with the process; gauges show the account on disk.
type accounts struct {
	agent    *Agent
	own      *meter.Set // hwsagent_*
	prom     *meter.Set // prometheus_*
	counters counters

	account, accountDropped                      *prometheus.Desc
	appended, delivered, filtered, dropped, lost *prometheus.Desc
	pending, missed, pendingBytes, lag, severity *prometheus.Desc
	failing, skipped, refused                    *prometheus.Desc
	maxBytes, freeBytes                          *prometheus.Desc

	inputSeries, inputFiltered, inputRefused, inputPanics *prometheus.Desc
	twiceSeries, twiceSamples                             *prometheus.Desc

	samplesIn, segment, readSegment *prometheus.Desc
}

func newAccounts(a *Agent) *accounts {
	own, prom := meter.NewSet("hwsagent_"), meter.NewSet("prometheus_")
	return &accounts{
		agent: a, own: own, prom: prom,
		appended:       own.Desc(meter.Sent, meter.Counter, "target_appended_samples_total", "Samples appended to the log for the target since the agent started.", "target"),
		delivered:      own.Desc(meter.Sent, meter.Counter, "target_delivered_samples_total", "Samples that the receiver accepted since the agent started.", "target"),
		filtered:       own.Desc(meter.Sent, meter.Counter, "target_filtered_samples_total", "Samples that write_relabel_configs removed since the agent started.", "target"),
		dropped:        own.Desc(meter.NotZero, meter.Counter, "target_dropped_samples_total", "Samples given up since the agent started, by reason; all but unconfirmed, which may be stored, are lost.", "target", "reason"),
		lost:           own.Desc(meter.Sent, meter.Counter, "target_lost_samples_total", "Samples given up since the agent started for any reason but unconfirmed.", "target"),
		account:        own.Desc(meter.Shown, meter.Gauge, "target_account_samples", "Samples of the target's account since it was first known, over restarts, by outcome: appended, delivered, filtered.", "target", "outcome"),
		accountDropped: own.Desc(meter.Shown, meter.Gauge, "target_account_dropped_samples", "Samples of the target's account that were given up since it was first known, by reason.", "target", "reason"),
		pending:        own.Desc(meter.Sent, meter.Gauge, "target_pending_samples", "Samples in the log that wait for the target.", "target"),
		missed:         own.Desc(meter.NotZero, meter.Gauge, "target_missed_samples", "Waiting samples that a target with catch_up: live_first gets beside the fresh ones; 0 with in_order.", "target"),
		pendingBytes:   own.Desc(meter.Sent, meter.Gauge, "target_pending_bytes", "Bytes of the log that wait for the target.", "target"),
		lag:            own.Desc(meter.Sent, meter.Gauge, "target_lag_seconds", "Age of the oldest sample that waits; 0 if none does.", "target"),
		severity:       own.Desc(meter.NotZero, meter.Gauge, "target_severity", "How bad it is that the target accepts nothing: 0 it accepts samples, 1 waiting may help, 2 a person must act.", "target"),
		failing:        own.Desc(meter.NotZero, meter.Gauge, "probe_failing", "1 while a probe reads nothing: its last round failed or hangs; else 0.", "probe"),
		skipped:        own.Desc(meter.NotZero, meter.Counter, "probe_skipped_rounds_total", "Rounds that did not begin because the previous round had not ended.", "probe"),
		refused:        own.Desc(meter.NotZero, meter.Counter, "probe_refused_samples_total", "Samples that were invalid, or that the log refused.", "probe"),
		maxBytes:       own.Desc(meter.Sent, meter.Gauge, "wal_max_bytes", "The log's budget, wal.max_bytes."),
		freeBytes:      own.Desc(meter.Sent, meter.Gauge, "wal_free_bytes", "Bytes free on the log's file system."),

		inputSeries: own.Desc(meter.Sent, meter.Gauge, "input_series", "Series that an input (probe host, scrape node, receiver otlp) appends now.", "input"),
		inputFiltered: own.Desc(meter.NotZero, meter.Counter, "input_filtered_samples_total",
			"Samples that the metric_relabel_configs of a probe or receiver dropped; for successful scrapes, scrape_samples_scraped minus scrape_samples_post_metric_relabeling.", "input"),
		inputRefused: own.Desc(meter.NotZero, meter.Counter, "input_refused_samples_total", "Samples of series beyond the input's max_series.", "input"),
		inputPanics:  own.Desc(meter.NotZero, meter.Counter, "input_panics_total", "Panics in an input or in pull. Each is a bug, and cost a round or a request.", "input"),
		twiceSeries:  own.Desc(meter.NotZero, meter.Gauge, "duplicate_series", "Series that two inputs append now; input had them first.", "input", "other"),
		twiceSamples: own.Desc(meter.NotZero, meter.Counter, "duplicate_samples_total", "Samples of these series that the other input appended.", "input", "other"),

		samplesIn:   prom.Desc(meter.Sent, meter.Counter, "remote_storage_samples_in_total", "Samples committed to the log since the start."),
		segment:     prom.Desc(meter.Sent, meter.Gauge, "tsdb_wal_segment_current", "Number of the segment to which the log writes."),
		readSegment: prom.Desc(meter.Sent, meter.Gauge, "wal_watcher_current_segment", "Number of the segment that the target has reached.", "consumer"),
	}
}

func (c *accounts) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.account, c.accountDropped, c.appended, c.delivered, c.filtered, c.dropped, c.lost, c.pending, c.missed, c.pendingBytes, c.lag, c.severity,
		c.failing, c.skipped, c.refused, c.maxBytes, c.freeBytes,
		c.inputSeries, c.inputFiltered, c.inputRefused, c.inputPanics, c.twiceSeries, c.twiceSamples,
		c.samplesIn, c.segment, c.readSegment} {
		ch <- d
	}
}

func (c *accounts) Collect(ch chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	now, stepped := time.Now(), c.agent.clock.LastStep()
	for name, severity := range c.agent.severities(stepped, now) {
		send(c.severity, prometheus.GaugeValue, float64(severity), name)
	}
	for _, t := range c.agent.targets.All() {
		a := t.Account(stepped, now)
		l, since := a.Total, a.Since
		send(c.appended, prometheus.CounterValue, float64(since.Appended), t.Name())
		send(c.delivered, prometheus.CounterValue, float64(since.Delivered), t.Name())
		send(c.filtered, prometheus.CounterValue, float64(since.Filtered), t.Name())
		send(c.account, prometheus.GaugeValue, float64(l.Appended), t.Name(), "appended")
		send(c.account, prometheus.GaugeValue, float64(l.Delivered), t.Name(), "delivered")
		send(c.account, prometheus.GaugeValue, float64(l.Filtered), t.Name(), "filtered")
		for r, n := range l.Dropped {
			send(c.dropped, prometheus.CounterValue, float64(since.Dropped[r]), t.Name(), queue.Reason(r).String())
			if n > 0 {
				send(c.accountDropped, prometheus.GaugeValue, float64(n), t.Name(), queue.Reason(r).String())
			}
		}
		send(c.lost, prometheus.CounterValue, float64(since.Lost()), t.Name())
		send(c.pending, prometheus.GaugeValue, float64(l.Pending), t.Name())
		send(c.missed, prometheus.GaugeValue, float64(a.Missed), t.Name())
		send(c.pendingBytes, prometheus.GaugeValue, float64(a.PendingBytes), t.Name())
		send(c.lag, prometheus.GaugeValue, a.Lag.Seconds(), t.Name())
		send(c.readSegment, prometheus.GaugeValue, float64(a.Segment), t.Name())
	}
	for _, p := range c.agent.runner.Status() {
		send(c.failing, prometheus.GaugeValue, oneIf(p.State == "failing" || p.State == "hung"), p.Name)
		ch <- c.counters.metric(c.skipped, p.Skipped, p.Name)
		ch <- c.counters.metric(c.refused, p.Refused, p.Name)
	}
	for _, in := range c.agent.inputs.Status() {
		name := in.Kind + " " + in.Name
		send(c.inputSeries, prometheus.GaugeValue, float64(in.Series), name)
		ch <- c.counters.metric(c.inputFiltered, in.Filtered, name)
		ch <- c.counters.metric(c.inputRefused, in.Refused, name)
		ch <- c.counters.metric(c.inputPanics, in.Panics.Count, name)
	}
	send(c.inputPanics, prometheus.CounterValue, float64(c.agent.pulling.Count()), pullName)
	for _, d := range c.agent.inputs.Duplicates() {
		send(c.twiceSeries, prometheus.GaugeValue, float64(d.Series), d.Input, d.Other)
		ch <- c.counters.metric(c.twiceSamples, d.Samples, d.Input, d.Other)
	}
	s := c.agent.log.Status()
	send(c.maxBytes, prometheus.GaugeValue, float64(s.MaxBytes))
	send(c.freeBytes, prometheus.GaugeValue, float64(s.Free))
	send(c.samplesIn, prometheus.CounterValue, float64(s.Appended))
	send(c.segment, prometheus.GaugeValue, float64(s.Head.Segment))
}

// severities returns for each target how bad it is that it accepts nothing.
func (a *Agent) severities(stepped, now time.Time) map[string]int {
	s := status.Status{Running: true, Now: now}
	for _, t := range a.targets.All() {
		s.Targets = append(s.Targets, t.Status(stepped, now))
	}
	a.events.Outages(now, s.Targets)
	all := map[string]int{}
	for _, t := range s.Targets {
		all[t.Name] = status.Severity(s, t)
	}
	return all
}

// oneIf is 1 for true and 0 for false.
func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
