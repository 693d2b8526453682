// Package metrics has the metrics of one target, and counts its requests, answers and samples in them.
package metrics

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hwsagent/internal/meter"
	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/wire"
	"hwsagent/wal/queue"
)

// Target is the metrics of one target: the prometheus_remote_storage_* set with the
// labels remote_name and url, as the dashboards and alerts of Prometheus'
// remote write expect it, and hwsagent_target_* for all other values.
//
// All methods may be called from any goroutine.
type Target struct {
	reg  prometheus.Registerer // nil: not registered
	sets []*meter.Set

	total, failed, retried [numKinds]prometheus.Counter
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
	token    *prometheus.GaugeVec // without labels: absent unless a token has a known end

	protocol  *prometheus.GaugeVec
	fallbacks prometheus.Counter

	compression *prometheus.GaugeVec
	tookBack    prometheus.Counter

	mute mute
}

// Kind is a kind of data that the remote-storage metrics count separately.
type Kind uint8

// The kinds.
const (
	Samples Kind = iota
	Histograms
	Exemplars
	Metadata
	numKinds
)

var kindNames = [numKinds]string{"samples", "histograms", "exemplars", "metadata"}

// Counts is the number of items of each kind in a batch.
type Counts [numKinds]int

// targetStates are the values of the label state of hwsagent_target_state.
var targetStates = []string{"starting", "ok", "behind", "retrying", "held", "paused"}

// New registers the metrics of a target. The url must not contain secrets (see
// [config.URL.String]). It fails if metrics of the same name and url are registered.
func New(reg prometheus.Registerer, name, url string) (*Target, error) {
	m := Unregistered(name, url)
	m.reg = reg
	if err := m.Register(); err != nil {
		return nil, fmt.Errorf("register metrics of target %q: %w", name, err)
	}
	return m, nil
}

// Unregistered makes metrics that count but are not exported.
func Unregistered(name, url string) *Target {
	m := new(Target)
	m.addCompatible(meter.NewSet("prometheus_remote_storage_", "remote_name", name, "url", url))
	m.addOwn(meter.NewSet("hwsagent_target_", "target", name))
	m.addMuted(meter.NewSet("hwsagent_remotewrite_", "target", name))
	m.SetProtocol(wire.V1)
	m.SetCompression(wire.Snappy)
	return m
}

// Described returns the metrics of every target.
func Described() (all []meter.Metric) {
	for _, set := range Unregistered("", "").sets {
		all = append(all, set.Metrics()...)
	}
	return all
}

// Register adds the metrics to the registry, again after [Target.Unregister]: the counters keep their values.
func (m *Target) Register() error {
	m.SetState(targetStates[0])
	for i, set := range m.sets {
		if err := set.Register(m.reg); err != nil {
			for _, done := range m.sets[:i] {
				done.Unregister(m.reg)
			}
			if _, twice := errors.AsType[prometheus.AlreadyRegisteredError](err); twice {
				return errors.New("another target has the same name and URL")
			}
			return err
		}
	}
	return nil
}

// Unregister removes the metrics from the registry.
func (m *Target) Unregister() {
	for _, set := range m.sets {
		set.Unregister(m.reg)
	}
}

// addCompatible makes the set of Prometheus' own sender, with its names.
//
// Metrics that the dashboard and the alerts of Prometheus' mixin read have the level Sent:
// https://github.com/prometheus/prometheus/tree/main/documentation/prometheus-mixin.
func (m *Target) addCompatible(set *meter.Set) {
	m.sets = append(m.sets, set)
	for c, name := range kindNames {
		level := meter.Shown
		if Kind(c) == Samples {
			level = meter.Sent
		}
		m.total[c] = set.Counter(level, name+"_total", "How many "+name+" were sent in requests, each attempt counted.")
		refused := "How many " + name + " the receiver refused for good."
		if Kind(c) == Exemplars {
			refused = "How many exemplars were not delivered: they were in a refused request, or their sample was not sent with them."
		}
		m.failed[c] = set.Counter(level, name+"_failed_total", refused)
		m.retried[c] = set.Counter(level, name+"_retried_total", "How many "+name+" were sent again, each time counted.")
	}
	m.dropped = set.CounterVec(meter.NotZero, "samples_dropped_total",
		"How many samples, histograms included, were read from the log and not sent, by reason; dropped_series are those that write_relabel_configs removed.", "reason")
	m.pending = set.Gauge(meter.Sent, "samples_pending", "How many samples, histograms included, were read from the log and have no final outcome yet; samples that wait unread in the log are not included.")
	m.bytes = set.Counter(meter.Sent, "bytes_total", "Compressed bytes of requests with samples that were sent.")
	m.metadataBytes = set.Counter(meter.Shown, "metadata_bytes_total", "Compressed bytes of requests with metadata that were sent.")
	m.enqueueRetries = set.Counter(meter.Sent, "enqueue_retries_total", "How often reading the log waited because a shard was full.")
	m.batchDuration = set.Histogram(meter.Shown, "sent_batch_duration_seconds", "How long requests took, whatever their outcome.", prometheus.HistogramOpts{
		Buckets:                        append(slices.Clone(prometheus.DefBuckets), 25, 60, 120, 300),
		NativeHistogramBucketFactor:    1.1,
		NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
	})
	m.highest = &maxGauge{gauge: set.Gauge(meter.Sent, "queue_highest_timestamp_seconds", "Highest timestamp read from the log, in seconds since the epoch; 0 before the first sample; falls if this host's clock is set back by more than an hour.")}
	m.highestSent = &maxGauge{gauge: set.Gauge(meter.Sent, "queue_highest_sent_timestamp_seconds", "Highest timestamp delivered, likewise.")}
	m.shards = set.Gauge(meter.Sent, "shards", "How many requests may be in flight now.")
	m.minShards = set.Gauge(meter.Sent, "shards_min", "The fewest requests that may be in flight, queue_config.min_shards.")
	m.maxShards = set.Gauge(meter.Sent, "shards_max", "The most requests that may be in flight, queue_config.max_shards.")
	m.desired = set.Gauge(meter.Sent, "shards_desired", "How many requests in flight the backlog needs.")
	m.capacity = set.Gauge(meter.Sent, "shard_capacity", "How many samples a shard may hold, queue_config.capacity.")
	m.maxSamples = set.Gauge(meter.Shown, "max_samples_per_send", "The most samples in a request now: queue_config.max_samples_per_send, or fewer after the receiver refused requests as too large.")
}

// addOwn makes the metrics that the compatible set lacks.
func (m *Target) addOwn(set *meter.Set) {
	m.sets = append(m.sets, set)
	m.state = set.GaugeVec(meter.NotZero, "state", "1 for the state that the target is in, 0 for the others.", "state")
	m.requests = set.CounterVec(meter.NotZero, "requests_total", "Requests, by HTTP status; error where no response came.", "code")
	m.letters = set.Counter(meter.Shown, "dead_letters_total", "Letters put into the dead-letter store since the start.")
	m.skew = set.Gauge(meter.Sent, "clock_skew_seconds", "This host's clock minus the receiver's; 0 while unknown.")
	m.held = set.Counter(meter.Sent, "held_seconds_total", "How long the target was held, in ended and present holds.")
	m.reloads = set.CounterVec(meter.Shown, "credential_reloads_total", "Changes of credential and certificate files, by whether they could be used: ok, failed.", "result")
	m.expiry = set.GaugeVec(meter.Sent, "certificate_expiry_timestamp_seconds", "When the earliest certificate of the role expires, in seconds since the epoch: client, ca, server (the receiver's, once seen), oauth2_client, oauth2_ca.", "role")
	m.token = set.GaugeVec(meter.Sent, "token_expiry_timestamp_seconds", "When the token in use expires, in seconds since the epoch, by the token itself (a JSON web token) or by the token endpoint; absent if unknown.")
	for _, r := range []string{"ok", "failed"} {
		m.reloads.WithLabelValues(r)
	}
	m.protocol = set.GaugeVec(meter.Shown, "protocol", "1 for the remote-write version that the target gets, 0 for the other.", "version")
	m.fallbacks = set.Counter(meter.Shown, "protocol_fallbacks_total", "How often the target did not accept remote write 2.0; for an hour after that it gets 1.0.")
	m.compression = set.GaugeVec(meter.Shown, "compression", "1 for the compression that requests with samples have, 0 for the other: snappy, zstd.", "compression")
	m.tookBack = set.Counter(meter.Shown, "compression_fallbacks_total", "How often the target did not accept zstd, or did not identify itself as VictoriaMetrics; until the next start it gets snappy.")
}

// Sending counts a request that is about to be sent. The items of a retry count as sent
// and as retried, as in Prometheus.
func (m *Target) Sending(c Counts, bytes int, retry bool) {
	for i, n := range c {
		m.total[i].Add(float64(n))
		if retry {
			m.retried[i].Add(float64(n))
		}
	}
	if c[Metadata] > 0 {
		m.metadataBytes.Add(float64(bytes))
	} else {
		m.bytes.Add(float64(bytes))
	}
}

// Answered counts the answer to a request.
func (m *Target) Answered(a client.Answer) {
	m.batchDuration.Observe(a.Took.Seconds())
	code := "error"
	if a.Status != 0 {
		code = strconv.Itoa(a.Status)
	}
	m.requests.WithLabelValues(code).Inc()
}

// Failed counts the items that the receiver refused for good.
func (m *Target) Failed(c Counts) {
	for i, n := range c {
		m.failed[i].Add(float64(n))
	}
}

// Settled counts final outcomes other than a delivery: samples removed on purpose and
// samples not sent. The reader's ledger has the complete account.
func (m *Target) Settled(o queue.Outcome) {
	if o.Filtered > 0 {
		m.dropped.WithLabelValues("dropped_series").Add(float64(o.Filtered))
	}
	for i, n := range o.Dropped {
		r := queue.Reason(i)
		failed := r == queue.Rejected || r == queue.Unconfirmed // Failed counts these
		if n > 0 && !failed {
			m.dropped.WithLabelValues(r.String()).Add(float64(n))
		}
	}
}

// SetPending shows how many samples were read and have no final outcome.
func (m *Target) SetPending(n uint64) { m.pending.Set(float64(n)) }

// Read records the highest timestamp of an entry, in milliseconds.
func (m *Target) Read(t int64) { m.highest.raise(t) }

// Delivered records the highest timestamp of a delivered batch, in milliseconds.
func (m *Target) Delivered(t int64) { m.highestSent.raise(t) }

// Waited counts one wait of the log reader for a full shard.
func (m *Target) Waited() { m.enqueueRetries.Inc() }

// SetLimits shows the exported limits of queue_config.
func (m *Target) SetLimits(minShards, maxShards, capacity int) {
	m.minShards.Set(float64(minShards))
	m.maxShards.Set(float64(maxShards))
	m.capacity.Set(float64(capacity))
}

// SetShards shows how many shards there are and how many the backlog calls for.
func (m *Target) SetShards(now, desired int) {
	m.shards.Set(float64(now))
	m.desired.Set(float64(desired))
}

// SetMaxSamples shows the present sample limit of a request.
func (m *Target) SetMaxSamples(n int) { m.maxSamples.Set(float64(n)) }

// SetState shows the target's state: starting, ok, behind, retrying, held, or paused, which
// a queue never enters by itself.
func (m *Target) SetState(state string) { oneHot(m.state, state, targetStates...) }

// oneHot sets the value of one label of all to 1, and of the others to 0.
func oneHot(v *prometheus.GaugeVec, is string, all ...string) {
	for _, s := range all {
		on := 0.0
		if s == is {
			on = 1
		}
		v.WithLabelValues(s).Set(on)
	}
}

// SetSkew shows this host's clock minus the receiver's.
func (m *Target) SetSkew(d time.Duration) { m.skew.Set(d.Seconds()) }

// Held adds to the time that the target was held.
func (m *Target) Held(d time.Duration) {
	if d > 0 {
		m.held.Add(d.Seconds())
	}
}

// SetProtocol shows the version in use.
func (m *Target) SetProtocol(v wire.Version) {
	oneHot(m.protocol, v.String(), wire.V1.String(), wire.V2.String())
}

// FellBack counts that the target did not take remote write 2.0.
func (m *Target) FellBack() { m.fallbacks.Inc() }

// SetCompression shows the compression in use.
func (m *Target) SetCompression(c wire.Compression) {
	oneHot(m.compression, c.String(), wire.Snappy.String(), wire.Zstd.String())
}

// TookBack counts a change from zstd to snappy.
func (m *Target) TookBack() { m.tookBack.Inc() }

// Letters counts letters that were put into the dead-letter store.
func (m *Target) Letters(n int) { m.letters.Add(float64(n)) }

// maxGauge is a gauge of seconds that normally only rises.
//
// A timestamp older by more than fallBack means that this host's clock was set back:
// the gauge follows. Otherwise one sample a year ahead, which is dropped, would make the
// target look a year behind until that year is over.
type maxGauge struct {
	gauge prometheus.Gauge
	mu    sync.Mutex
	ms    int64
}

// fallBack exceeds the largest time difference between samples of one target that are read or delivered
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
