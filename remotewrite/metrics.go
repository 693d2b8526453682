package remotewrite

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/wire"
	"hwsagent/wal"
)

// Metrics are one target's metrics: the prometheus_remote_storage_* set with the
// labels remote_name and url, by which the dashboards and alerts of Prometheus'
// remote write work, and hwsagent_target_* for what they do not show.
//
// All methods may be called on a nil *Metrics and from any goroutine.
type Metrics struct {
	reg prometheus.Registerer
	all []prometheus.Collector

	total, failed, retried [numClasses]prometheus.Counter
	dropped                *prometheus.CounterVec // by reason
	pending                prometheus.Gauge
	bytes, metadataBytes   prometheus.Counter
	enqueueRetries         prometheus.Counter
	batchDuration          prometheus.Histogram
	highest, highestSent   *maxGauge
	shards, minShards      prometheus.Gauge
	maxShards, desired     prometheus.Gauge
	capacity, maxSamples   prometheus.Gauge

	state    *prometheus.GaugeVec
	requests *prometheus.CounterVec
	letters  prometheus.Counter
	skew     prometheus.Gauge
	held     prometheus.Counter
	reloads  *prometheus.CounterVec
	expiry   *prometheus.GaugeVec // by role
	token    *prometheus.GaugeVec // without labels: it is not there where no token says its end

	protocol  *prometheus.GaugeVec
	fallbacks prometheus.Counter
	unwritten *prometheus.CounterVec
}

// class is what the remote-storage metrics tell apart.
type class uint8

const (
	classSample class = iota
	classHistogram
	classExemplar
	classMetadata
	numClasses
)

var classNames = [numClasses]string{"samples", "histograms", "exemplars", "metadata"}

// Counts says how much of each kind a batch holds.
type Counts [numClasses]int

// count counts points.
func count(points []point) (c Counts) {
	for i := range points {
		switch points[i].kind {
		case float:
			c[classSample]++
		case exemplarPoint:
			c[classExemplar]++
		default:
			c[classHistogram]++
		}
	}
	return c
}

// targetStates are the values of the label state of hwsagent_target_state.
var targetStates = []string{"starting", "ok", "behind", "retrying", "held", "paused"}

// NewMetrics registers the metrics of a target. The url must be without secrets (see
// [config.URL.String]). It fails when metrics of the same name and url are registered. With a
// nil registerer the metrics count and nobody sees them.
func NewMetrics(reg prometheus.Registerer, name, url string) (*Metrics, error) {
	m := &Metrics{reg: reg}
	m.addCompatible(prometheus.Labels{"remote_name": name, "url": url})
	m.addOwn(prometheus.Labels{"target": name})
	if reg == nil {
		return m, nil
	}
	for i, c := range m.all {
		if err := reg.Register(c); err != nil {
			for _, done := range m.all[:i] {
				reg.Unregister(done)
			}
			if _, twice := errors.AsType[prometheus.AlreadyRegisteredError](err); twice {
				return nil, fmt.Errorf("register metrics of target %q: another target has the same name and URL", name)
			}
			return nil, fmt.Errorf("register metrics of target %q: %w", name, err)
		}
	}
	return m, nil
}

// Unregister removes the metrics from the registry.
func (m *Metrics) Unregister() {
	if m == nil || m.reg == nil {
		return
	}
	for _, c := range m.all {
		m.reg.Unregister(c)
	}
}

// addCompatible makes the set that Prometheus' own sender has, with its names.
func (m *Metrics) addCompatible(l prometheus.Labels) {
	opts := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "prometheus", Subsystem: "remote_storage", Name: name, Help: help, ConstLabels: l}
	}
	counter := func(name, help string) prometheus.Counter {
		return add(m, prometheus.NewCounter(prometheus.CounterOpts(opts(name, help))))
	}
	gauge := func(name, help string) prometheus.Gauge {
		return add(m, prometheus.NewGauge(prometheus.GaugeOpts(opts(name, help))))
	}
	for c, name := range classNames {
		m.total[c] = counter(name+"_total", "How many "+name+" were sent in requests, each attempt counted.")
		m.failed[c] = counter(name+"_failed_total", "How many "+name+" the receiver refused for good.")
		m.retried[c] = counter(name+"_retried_total", "How many "+name+" were sent again, each time counted.")
	}
	m.dropped = add(m, prometheus.NewCounterVec(prometheus.CounterOpts(opts("samples_dropped_total",
		"How many samples, histograms included, were read from the log and not sent, by reason; dropped_series are those that write_relabel_configs removed.")), []string{"reason"}))
	m.pending = gauge("samples_pending", "How many samples, histograms included, were read from the log and have no final outcome yet.")
	m.bytes = counter("bytes_total", "Compressed bytes of requests with samples that were sent.")
	m.metadataBytes = counter("metadata_bytes_total", "Compressed bytes of requests with metadata that were sent.")
	m.enqueueRetries = counter("enqueue_retries_total", "How often reading the log waited because a shard was full.")
	duration := prometheus.HistogramOpts{
		Namespace: "prometheus", Subsystem: "remote_storage", Name: "sent_batch_duration_seconds", ConstLabels: l,
		Help:                           "How long requests took, whatever came of them.",
		Buckets:                        append(slices.Clone(prometheus.DefBuckets), 25, 60, 120, 300),
		NativeHistogramBucketFactor:    1.1,
		NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
	}
	m.batchDuration = add(m, prometheus.NewHistogram(duration))
	m.highest = &maxGauge{gauge: gauge("queue_highest_timestamp_seconds", "Highest timestamp read from the log, in seconds since the epoch; 0 before the first.")}
	m.highestSent = &maxGauge{gauge: gauge("queue_highest_sent_timestamp_seconds", "Highest timestamp delivered, in seconds since the epoch; 0 before the first.")}
	m.shards = gauge("shards", "How many requests may be in flight at present.")
	m.minShards = gauge("shards_min", "The fewest requests that may be in flight, queue_config.min_shards.")
	m.maxShards = gauge("shards_max", "The most requests that may be in flight, queue_config.max_shards.")
	m.desired = gauge("shards_desired", "How many requests the backlog calls for.")
	m.capacity = gauge("shard_capacity", "How many samples a shard may hold, queue_config.capacity.")
	m.maxSamples = gauge("max_samples_per_send", "The most samples in a request at present: queue_config.max_samples_per_send, or less where the receiver found requests too large.")
}

// addOwn makes what the compatible set has no place for.
func (m *Metrics) addOwn(l prometheus.Labels) {
	opts := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "hwsagent", Name: name, Help: help, ConstLabels: l}
	}
	m.state = add(m, prometheus.NewGaugeVec(prometheus.GaugeOpts(opts("target_state", "1 for the state that the target is in, 0 for the others.")), []string{"state"}))
	m.requests = add(m, prometheus.NewCounterVec(prometheus.CounterOpts(opts("target_requests_total", "Requests, by HTTP status; error where no response came.")), []string{"code"}))
	m.letters = add(m, prometheus.NewCounter(prometheus.CounterOpts(opts("target_dead_letters_total", "Letters put into the dead-letter store."))))
	m.skew = add(m, prometheus.NewGauge(prometheus.GaugeOpts(opts("target_clock_skew_seconds", "This host's clock minus the receiver's; 0 while unknown."))))
	m.held = add(m, prometheus.NewCounter(prometheus.CounterOpts(opts("target_held_seconds_total", "How long the target was held, in ended and present holds."))))
	m.reloads = add(m, prometheus.NewCounterVec(prometheus.CounterOpts(opts("target_credential_reloads_total", "Changes of credential and certificate files, by whether they could be used.")), []string{"result"}))
	m.expiry = add(m, prometheus.NewGaugeVec(prometheus.GaugeOpts(opts("target_certificate_expiry_timestamp_seconds", "When the earliest certificate of the role ends, in seconds since the epoch.")), []string{"role"}))
	m.token = add(m, prometheus.NewGaugeVec(prometheus.GaugeOpts(opts("target_token_expiry_timestamp_seconds", "When the token in use ends, as it says itself or the token endpoint said, in seconds since the epoch.")), nil))
	for _, r := range []string{"ok", "failed"} {
		m.reloads.WithLabelValues(r)
	}
	m.protocol = add(m, prometheus.NewGaugeVec(prometheus.GaugeOpts(opts("target_protocol", "1 for the version of remote write that the target is written to in, 0 for the other.")), []string{"version"}))
	m.fallbacks = add(m, prometheus.NewCounter(prometheus.CounterOpts(opts("target_protocol_fallbacks_total", "How often the target did not take remote write 2.0 and got 1.0 from then on, for a time."))))
	m.unwritten = add(m, prometheus.NewCounterVec(prometheus.CounterOpts(opts("target_unwritten_total", "What was in accepted requests and the receiver says that it did not write, by kind; samples include histograms and count as delivered.")), []string{"kind"}))
	for _, kind := range []string{"samples", "exemplars"} {
		m.unwritten.WithLabelValues(kind)
	}
	m.SetProtocol(wire.V1)
	m.SetState(targetStates[0])
}

func add[C prometheus.Collector](m *Metrics, c C) C {
	m.all = append(m.all, c)
	return c
}

// Sending counts a request that is about to go out. What is in a retry counts as sent
// and as retried, as with Prometheus.
func (m *Metrics) Sending(c Counts, bytes int, retry bool) {
	if m == nil {
		return
	}
	for i, n := range c {
		m.total[i].Add(float64(n))
		if retry {
			m.retried[i].Add(float64(n))
		}
	}
	if c[classMetadata] > 0 {
		m.metadataBytes.Add(float64(bytes))
	} else {
		m.bytes.Add(float64(bytes))
	}
}

// Answered counts the answer to a request.
func (m *Metrics) Answered(a client.Answer) {
	if m == nil {
		return
	}
	m.batchDuration.Observe(a.Took.Seconds())
	code := "error"
	if a.Status != 0 {
		code = strconv.Itoa(a.Status)
	}
	m.requests.WithLabelValues(code).Inc()
}

// Failed counts what the receiver refused for good.
func (m *Metrics) Failed(c Counts) {
	if m == nil {
		return
	}
	for i, n := range c {
		if n > 0 {
			m.failed[i].Add(float64(n))
		}
	}
}

// Settled counts final outcomes other than a delivery: what was removed on purpose and
// what was not sent. The whole account is the reader's ledger.
func (m *Metrics) Settled(o wal.Outcome) {
	if m == nil {
		return
	}
	if o.Filtered > 0 {
		m.dropped.WithLabelValues("dropped_series").Add(float64(o.Filtered))
	}
	for i, n := range o.Dropped {
		r := wal.Reason(i)
		if n == 0 || r == wal.Resent {
			continue
		}
		if r != wal.Rejected && r != wal.Unconfirmed { // those were sent, and failed
			m.dropped.WithLabelValues(r.String()).Add(float64(n))
		}
	}
}

// SetPending shows how many samples were read and have no final outcome.
func (m *Metrics) SetPending(n uint64) {
	if m != nil {
		m.pending.Set(float64(n))
	}
}

// Read notes the highest timestamp of an entry, in milliseconds.
func (m *Metrics) Read(t int64) {
	if m != nil {
		m.highest.raise(t)
	}
}

// Delivered notes the highest timestamp of a delivered batch, in milliseconds.
func (m *Metrics) Delivered(t int64) {
	if m != nil {
		m.highestSent.raise(t)
	}
}

// Waited counts that reading the log waited for a full shard.
func (m *Metrics) Waited() {
	if m != nil {
		m.enqueueRetries.Inc()
	}
}

// SetLimits shows what of queue_config is shown.
func (m *Metrics) SetLimits(minShards, maxShards, capacity int) {
	if m != nil {
		m.minShards.Set(float64(minShards))
		m.maxShards.Set(float64(maxShards))
		m.capacity.Set(float64(capacity))
	}
}

// SetShards shows how many shards there are and how many the backlog calls for.
func (m *Metrics) SetShards(now, desired int) {
	if m != nil {
		m.shards.Set(float64(now))
		m.desired.Set(float64(desired))
	}
}

// SetMaxSamples shows the present limit of a request.
func (m *Metrics) SetMaxSamples(n int) {
	if m != nil {
		m.maxSamples.Set(float64(n))
	}
}

// SetState shows the target's state: starting, ok, behind, retrying, held, or paused, which
// no queue is by itself.
func (m *Metrics) SetState(state string) {
	if m == nil {
		return
	}
	for _, s := range targetStates {
		v := 0.0
		if s == state {
			v = 1
		}
		m.state.WithLabelValues(s).Set(v)
	}
}

// SetSkew shows this host's clock minus the receiver's.
func (m *Metrics) SetSkew(d time.Duration) {
	if m != nil {
		m.skew.Set(d.Seconds())
	}
}

// Held adds to the time that the target was held.
func (m *Metrics) Held(d time.Duration) {
	if m != nil && d > 0 {
		m.held.Add(d.Seconds())
	}
}

// SetProtocol shows the version in use.
func (m *Metrics) SetProtocol(v wire.Version) {
	if m == nil {
		return
	}
	m.protocol.WithLabelValues(v.String()).Set(1)
	m.protocol.WithLabelValues((wire.V2 - v).String()).Set(0)
}

// FellBack counts that the target did not take remote write 2.0.
func (m *Metrics) FellBack() {
	if m != nil {
		m.fallbacks.Inc()
	}
}

// Unwritten counts what an accepted request had and the receiver did not write.
func (m *Metrics) Unwritten(samples, exemplars int) {
	if m != nil {
		m.unwritten.WithLabelValues("samples").Add(float64(samples))
		m.unwritten.WithLabelValues("exemplars").Add(float64(exemplars))
	}
}

// Letters counts letters that were put into the dead-letter store.
func (m *Metrics) Letters(n int) {
	if m != nil {
		m.letters.Add(float64(n))
	}
}

// maxGauge is a gauge of seconds that only rises, as a rule.
//
// A timestamp that is older by more than fallBack means that this host's clock was set back:
// the gauge follows. Otherwise one sample of a year ahead, which is dropped, would make the
// target look a year behind until that year is over.
type maxGauge struct {
	gauge prometheus.Gauge
	mu    sync.Mutex
	ms    int64
}

// fallBack is longer than samples of one target are ever apart that are read or delivered
// at the same time.
const fallBack = time.Hour

func (g *maxGauge) raise(ms int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if ms > g.ms || g.ms-ms > fallBack.Milliseconds() {
		g.ms = ms
		g.gauge.Set(float64(ms) / 1000)
	}
}
