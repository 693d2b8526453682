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
	"hwsagent/remotewrite/clock"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/families"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/latebook"
	"hwsagent/remotewrite/metrics"
	"hwsagent/remotewrite/pace"
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
	Memory         Memory           // nil: late series are forgotten when the queue ends
	Metrics        *metrics.Target  // nil: not exported
	Tenants        *tenant.Registry // required where Config is from [config.Config.ForRest]
	Rand           func() float64   // in [0, 1); nil: the runtime's
	Encoders       *EncoderPool     // shared by all queues of a process; nil: the queue's own
	ClockSynced    func() bool      // whether the kernel reports this host's clock as synchronised; nil: no
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
	book        *latebook.Book
	metrics     *metrics.Target
	name        string
	observer    Observer // nil: none
	log         *slog.Logger
	encoders    *EncoderPool
	gate        *gate.Gate
	meta        *families.Sender
	proto       *protocol.Versions
	compression *protocol.Compression
	toldOlder   protocol.Told // remembers that the target gets 1.0
	toldPlain   protocol.Told // remembers that the target gets snappy
	synced      func() bool
	every       func(d time.Duration) (ticks <-chan time.Time, stop func())
	empty       [wire.NumVersions]client.Request
	born        time.Time // has a monotonic reading: steps of the wall clock do not affect durations measured from it

	limit         *pace.BatchLimit
	receiver      [wire.NumVersions]atomic.Int32 // a split.Receiver: whether the target stores the good part of a refused request
	asked         atomic.Bool                    // whether the target was asked if it accepts empty writes
	clock         clock.Clock
	times         clock.Rules             // which samples may be sent, by that clock
	waitsSince    atomic.Int64            // when they began to wait, ns since the epoch
	waitsForClock atomic.Bool             // live samples wait for the target's clock, or the samples before them did
	emptyRefused  atomic.Pointer[refusal] // the refusal of an empty write that asked for the time
	retries       atomic.Uint64
	failed        atomic.Uint64
	sent          atomic.Uint64 // samples delivered since New
	requests      atomic.Uint64
	batches       atomic.Uint64 // requests that delivered samples
	tests         atomic.Int64  // number of held samples sent as tests
	trust         split.Trust   // in the target's refusals

	toldLimit     pace.Hourly      // limits how often too large requests are logged
	toldUnwritten pace.Hourly      // the same for a receiver that writes less than it accepts
	refusals      pace.OnceAMinute // the same for refusals

	down atomic.Int64 // start of the outage logged last, in Unix ns

	mu          sync.Mutex
	state       string    // as last observed
	observed    time.Time // when state was observed
	lastError   string
	lastErrorAt time.Time
	lastFailure client.Failure
	lastSuccess time.Time
	lastData    time.Time // when the target last accepted data

	// The series of these points is nil while there is none, and their seq is 0: they belong to no window.

	// taken is the delivered sample with the newest timestamp; either version can carry it. While the clock is set
	// back, it stays the newest of its series at the target, even where the target stores the good part of refused
	// batches; the sample delivered last need not be.
	taken point

	// good is the last sample that any shard delivered. While no shard delivers, it is the newest of its series at the
	// target.
	good point
	// refusedAsLate is the last sample of any shard that the receiver's database refused alone for its order or age.
	// The target refuses it again in the same words as long as that database answers.
	refusedAsLate point
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
	if o.ClockSynced == nil {
		o.ClockSynced = func() bool { return false }
	}
	if o.Every == nil {
		o.Every = func(d time.Duration) (<-chan time.Time, func()) { t := time.NewTicker(d); return t.C, t.Stop }
	}
}

// New creates a queue. It reads the savepoint, and puts samples in doubt that an earlier process may have sent.
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
		compression: protocol.NewCompression(o.Config.Target.Compression != config.CompressionSnappy, o.Config.Target.Compression == config.CompressionZstd),
		empty:       [wire.NumVersions]client.Request{wire.V1: client.EmptyRequest(wire.V1), wire.V2: client.EmptyRequest(wire.V2)},
		times:       timesOf(&o.Config),
		born:        time.Now(), synced: o.ClockSynced, every: o.Every, observer: o.Observer, name: o.Name,
	}
	q.meta = families.New(o.Config.Metadata, q.send, q.gate, o.Metrics)
	q.limit = pace.NewBatchLimit(c.MaxSamplesPerSend)
	reach, _ := o.Source.Reach()
	q.book = latebook.New(o.Memory)
	if err := q.book.Load(reach.Acked.Log); err != nil {
		q.log.Warn("Cannot read which series were late: it is found out again", slog.Any("err", err))
	}
	q.live = newLane(q, o.Source, &o)
	q.recallTaken()
	q.live.cache.recall = q.recallLate
	q.live.shards.Store(int32(q.minShards()))
	q.live.doubt()
	if o.Backlog != nil {
		q.back = newLane(q, o.Backlog, &o)
		q.back.behind = true
	}
	q.metrics.SetLimits(q.minShards(), q.maxShards(), c.Capacity)
	q.metrics.SetMaxSamples(c.MaxSamplesPerSend)
	q.metrics.SetProtocol(q.proto.Version())
	q.metrics.SetCompression(q.compression.InUse())
	return q, nil
}

// timesOf returns the entry's rules about the time of samples.
func timesOf(c *config.Config) clock.Rules {
	return clock.Rules{
		AgeLimit: time.Duration(c.Queue.SampleAgeLimit), FutureLimit: time.Duration(c.Target.FutureLimit),
		Wait: c.Target.OnFuture != config.FutureDrop,
	}
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
	defer func() { stop(); others.Wait(); q.quarantineLetters(true); q.saveLate(true) }()
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
	q.sawDate(a)
	q.learnCompression(a)
	return a
}

// sendEmpty sends an empty write.
func (q *Queue) sendEmpty(ctx context.Context, v wire.Version) client.Answer {
	a := q.send(ctx, q.empty[v])
	q.learnVersion(protocol.Choice{Version: v}, a, a.Verdict)
	return a
}

// mayGroup reports whether several samples of a series may share a request. If the request is refused, it must be
// possible to find out what became of them. That is impossible at a receiver that stores the good part, because all but
// the newest samples are late by then, and where no empty write can show whether the refusal was about the samples. With
// on_refusal: drop a refusal ends all samples of the request anyway.
func (q *Queue) mayGroup() bool {
	return q.kind() != split.KeepsGood && (q.gate.TakesEmpty() || q.drops())
}

// kind returns what the target does with the good part of a refused request: Prometheus stores it in 2.0, and stores
// nothing in 1.0.
func (q *Queue) kind() split.Receiver { return split.Receiver(q.receiver[q.proto.Version()].Load()) }

// learn records what the receiver does with the good part of a refused request.
func (q *Queue) learn(r split.Receiver) {
	q.receiver[q.proto.Version()].Store(int32(r))
	q.log.Debug("Learnt which samples of a refused request the receiver keeps", slog.Bool("keeps_good_part", r == split.KeepsGood))
}

// delivered records a success. which says that exactly these points were delivered, and not only as many.
func (q *Queue) delivered(points []point, which bool) {
	n := count(points)
	newest, sample := int64(math.MinInt64), -1
	for i := range points {
		newest = max(newest, points[i].t)
		if which && carries(&q.cfg, wire.V1, &points[i]) && points[i].kind != exemplarPoint && (sample < 0 || points[i].t >= points[sample].t) {
			sample = i
		}
	}
	q.sent.Add(uint64(n[metrics.Samples] + n[metrics.Histograms]))
	q.batches.Add(1)
	q.metrics.Delivered(newest)
	q.growBatch()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lastSuccess = time.Now()
	q.lastData = q.lastSuccess
	if sample >= 0 && (!q.taken.exists() || points[sample].t >= q.taken.t) {
		q.taken = points[sample]
		q.taken.seq = 0
	}
}

// takenBefore returns a sample that the target accepted before, if there is one and the next test should use it: every
// second test does, after takenFrom tests with waiting samples. Those may all be bad, or late because the clock was set
// back.
func (q *Queue) takenBefore() point {
	n := q.tests.Load()
	if n < takenFrom || n%2 == 0 {
		return point{}
	}
	p := q.last(&q.taken)
	if p.exists() {
		q.tests.Add(1)
	}
	return p
}

// lastGood returns the last sample that any shard delivered, or one that an earlier process delivered.
func (q *Queue) lastGood() point {
	if p := q.last(&q.good); p.exists() {
		return p
	}
	return q.last(&q.taken)
}

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
}

// noteAnswer records an answer that is an error. A 2xx that stores no samples of remote write 2.0 is not an error: the
// target then gets 1.0, and [Status.Fallback] says why.
func (q *Queue) noteAnswer(a client.Answer) {
	if a.Version != wire.V2 || !a.Accepted() {
		q.noteFailure(a.Why(), a.Failure)
	}
}
