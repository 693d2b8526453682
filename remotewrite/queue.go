package remotewrite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/metrics"
	"hwsagent/remotewrite/protocol"
	"hwsagent/remotewrite/split"
	"hwsagent/remotewrite/tenant"
	"hwsagent/remotewrite/wire"
)

// Options configure a queue. Source, Sender and Config are required.
type Options struct {
	Name           string
	Config         config.Config
	ExternalLabels labels.Labels // added to every series that lacks them
	Source         Source
	Backlog        Source      // of the samples that Split leaves behind; nil: no backlog ever
	Split          func() bool // see [wal.Reader.Split]; nil: never
	Sender         Sender
	DeadLetters    DeadLetters      // nil: refused samples are only logged
	Metrics        *metrics.Target  // nil: not exported
	Tenants        *tenant.Registry // required where Config is from [config.Config.ForRest]
	Rand           func() float64   // in [0, 1); nil: the runtime's
	Encoders       *EncoderPool     // shared by all queues of a process; nil: the queue's own
	Splay          time.Duration    // the first request is sent at a random time within it; 0: at once
	Observer       Observer         // nil: none
	Logger         *slog.Logger     // nil: none

	// Every returns a channel that gets a tick every d, the first one within d, and a function that stops the ticks;
	// nil: like [time.NewTicker]. If the whole process shares one, it wakes less often.
	Every func(d time.Duration) (ticks <-chan time.Time, stop func())
}

// Queue delivers the log to one target. New creates it, and Run may be called once. The other methods are safe for
// concurrent use at any time.
type Queue struct {
	cfg         config.Config
	live        *lane
	back        *lane       // of the backlog; nil without Options.Backlog
	split       func() bool // nil: no
	sender      Sender
	letters     DeadLetters
	metrics     *metrics.Target
	name        string
	observer    Observer // nil: none
	log         *slog.Logger
	encoders    *EncoderPool
	gate        *gate.Gate
	meta        *metadataSender
	proto       *protocol.Versions
	compression *protocol.Compression
	whyOlder    protocol.LastReason // remembers that the target gets 1.0
	every       func(d time.Duration) (ticks <-chan time.Time, stop func())
	born        time.Time // has a monotonic reading: steps of the wall clock do not affect durations measured from it

	limit    *gate.BatchLimit
	facts    split.Facts
	mutes    split.Mutes
	clock    receiverClock
	retries  atomic.Uint64
	failed   atomic.Uint64
	sent     atomic.Uint64 // samples delivered since New
	requests atomic.Uint64
	batches  atomic.Uint64 // requests that delivered samples
	tests    atomic.Int64  // number of held samples sent as tests

	toldLimit hourly      // limits how often too large requests are logged
	refusals  onceAMinute // the same for refusals

	down  atomic.Int64           // start of the outage logged last, in Unix ns
	apart atomic.Pointer[string] // what a batch that is sent in parts waits for; nil: nothing

	mu          sync.Mutex
	state       string    // as last observed
	observed    time.Time // when state was observed
	lastError   string
	lastErrorAt time.Time
	lastFailure client.Failure
	lastRefusal Refusal
	lastSuccess time.Time
	lastData    time.Time // when the target last accepted data

	// The series of these points is nil while there is none, and their seq is 0: they belong to no window.

	// good is the last sample that any shard delivered. While no shard delivers, it is the newest of its series at the
	// target.
	good point
	// refusedAsLate is the last sample of any shard that the receiver's database refused alone for its order or age.
	// The target refuses it again in the same words as long as that database answers.
	refusedAsLate point
	// ahead is the newest sample of the batch for which the target is held because of its clock.
	ahead point
	// tried is the first sample of a request that failed. It may be stored.
	tried point
}

// setDefaults fills in the optional fields that nothing else replaces.
func (o *Options) setDefaults() {
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	o.Encoders = cmp.Or(o.Encoders, NewEncoderPool())
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Metrics == nil {
		o.Metrics = metrics.Unregistered(o.Name, o.Config.URL.String())
	}
	if o.Every == nil {
		o.Every = func(d time.Duration) (<-chan time.Time, func()) { t := time.NewTicker(d); return t.C, t.Stop }
	}
}

// New creates a queue.
func New(o Options) (*Queue, error) {
	if o.Source == nil || o.Sender == nil {
		return nil, errors.New("make queue: it needs a source and a sender")
	}
	o.setDefaults()
	c := &o.Config.Queue
	if c.Capacity < 1 || c.MaxSamplesPerSend < 1 || c.MinShards < 1 || c.MaxShards < c.MinShards || c.MinBackoff <= 0 || c.MaxBackoff < c.MinBackoff {
		return nil, fmt.Errorf("make queue of target %q: queue_config is out of bounds: %+v", o.Name, *c)
	}
	if o.Config.Role() == config.RoleDefault {
		if o.Tenants == nil {
			return nil, fmt.Errorf("make queue of target %q: it needs to know the tenants", o.Name)
		}
		o.Source = &afterDiscovery{Source: o.Source, tenants: o.Tenants}
		if o.Backlog != nil {
			o.Backlog = &afterDiscovery{Source: o.Backlog, tenants: o.Tenants}
		}
	}
	q := &Queue{
		cfg: o.Config, split: o.Split, sender: o.Sender, letters: o.DeadLetters, metrics: o.Metrics,
		log:         o.Logger.With(slog.String("target", o.Name)),
		encoders:    o.Encoders,
		gate:        gate.New(time.Duration(c.MinBackoff), time.Duration(c.MaxBackoff), o.Splay, o.Rand),
		proto:       protocol.New(o.Config.AsksForV2()),
		compression: protocol.NewCompression(o.Config.Target.Compression == config.CompressionZstd),
		born:        time.Now(), every: o.Every, observer: o.Observer, name: o.Name,
	}
	q.meta = newMetadataSender(o.Config.Metadata, q.send, q.gate, o.Metrics)
	q.limit = gate.NewBatchLimit(c.MaxSamplesPerSend)
	q.live = newLane(q, o.Source, &o)
	q.live.shards.Store(int32(q.minShards()))
	if o.Backlog != nil {
		q.back = newLane(q, o.Backlog, &o)
		q.back.behind = true
	}
	q.metrics.SetLimits(q.minShards(), q.maxShards(), c.Capacity)
	q.metrics.SetMaxSamples(q.batchLimit())
	q.metrics.SetProtocol(q.proto.Version())
	q.metrics.SetCompression(q.compression.InUse())
	return q, nil
}

// minShards and maxShards are powers of two, so that a change of the number splits or merges whole shards.
func (q *Queue) minShards() int { return config.ShardsInUse(q.cfg.Queue.MinShards) }
func (q *Queue) maxShards() int { return config.ShardsInUse(q.cfg.Queue.MaxShards) }

// Run delivers until ctx ends. Then it sends the waiting samples once, if the target accepts data (see [window.close]),
// and gives requests in flight a moment to end: at most 1.1 s in all. All other samples stay in the log. It returns
// once ctx has ended or the log is closed, and all goroutines have ended.
func (q *Queue) Run(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	var others sync.WaitGroup
	defer func() { stop(); others.Wait() }()
	others.Go(func() { q.meta.Run(ctx) })
	if q.back != nil {
		others.Go(func() { q.back.runBehind(ctx) })
	}
	q.live.run(ctx)
}

// Poke makes a target that is held or waits to retry due now.
func (q *Queue) Poke() { q.gate.Poke() }

// CredentialsChanged makes a target that is held or waits to retry due now, because it may accept the new credentials,
// but not before the end of a pause that the target asked for.
func (q *Queue) CredentialsChanged() { q.gate.Retry() }

// send sends a request and records the facts that any answer shows.
func (q *Queue) send(ctx context.Context, r client.Request) client.Answer {
	q.requests.Add(1)
	a := q.sender.Send(ctx, r)
	a.Version, a.Compression, a.Samples = r.Version, r.Compression, r.Samples
	a = client.Judge(a, q.cfg.Policy())
	q.metrics.Answered(a)
	if !a.Accepted() {
		q.failed.Add(1)
	}
	q.clock.saw(a)
	if skew, known := q.clock.skew(); known {
		q.metrics.SetSkew(skew)
	}
	return a
}

// delivered records a success.
func (q *Queue) delivered(points []point) {
	n := count(points)
	newest := int64(math.MinInt64)
	for i := range points {
		newest = max(newest, points[i].t)
	}
	q.sent.Add(uint64(n[metrics.Samples] + n[metrics.Histograms]))
	q.batches.Add(1)
	q.metrics.Delivered(newest)
	q.growBatch()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lastSuccess = time.Now()
	q.lastData = q.lastSuccess
}

// lastGood returns the last sample that any shard delivered.
func (q *Queue) lastGood() point { return q.last(&q.good) }

// last returns one of the queue's points.
func (q *Queue) last(of *point) point {
	q.mu.Lock()
	defer q.mu.Unlock()
	return *of
}

// setLast replaces one of the queue's points.
func (q *Queue) setLast(of *point, p point) {
	p.seq = 0
	q.mu.Lock()
	defer q.mu.Unlock()
	*of = p
}

func (q *Queue) deliveredSince(t time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lastData.After(t)
}

// note records an error for the status; the log has transitions only.
func (q *Queue) note(text string) { q.noteFailure(text, client.Failure{}) }

func (q *Queue) noteFailure(text string, f client.Failure) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lastError, q.lastErrorAt, q.lastFailure = text, time.Now(), f
	if f.Kind == client.Refused {
		q.lastRefusal = Refusal{text, q.lastErrorAt}
	}
}

// noteAnswer records an answer that is an error. A 2xx that stores no samples of remote write 2.0 is not an error: the
// target then gets 1.0, and [Status.Fallback] says why.
func (q *Queue) noteAnswer(a client.Answer) {
	if a.Version != wire.V2 || !a.Accepted() {
		q.noteFailure(a.Why(), a.Failure)
	}
}
