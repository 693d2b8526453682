package remotewrite

import (
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

// Options are what a queue is made of. Source, Sender and Config are needed.
type Options struct {
	Name           string
	Config         config.Config
	ExternalLabels labels.Labels // of every series that does not have them
	Source         Source
	Backlog        Source      // of what Split leaves behind; nil: nothing ever
	Split          func() bool // see [wal.Reader.Split]; nil: never
	Sender         Sender
	DeadLetters    DeadLetters      // nil: refused samples are only logged
	Memory         Memory           // nil: which series are late is forgotten at the end
	Metrics        *metrics.Target  // nil: none
	Tenants        *tenant.Registry // needed where Config is from [Config.ForRest]
	Rand           func() float64   // in [0, 1); nil: the runtime's
	Encoders       *EncoderPool     // shared by all queues of a process; nil: the queue's own
	ClockSynced    func() bool      // whether the kernel calls this host's clock synchronised; nil: no
	Splay          time.Duration    // the first request goes at random within it; 0: at once
	Observer       Observer         // nil: none
	Logger         *slog.Logger     // nil: none

	// Every returns a channel that gets a tick each d, the first one within d, and a function that ends
	// this; nil: that of a [time.Ticker]. One for a whole process lets it wake less often.
	Every func(d time.Duration) (ticks <-chan time.Time, stop func())
}

// Queue delivers the log to one target. New makes one, Run runs it once. The other
// methods may be called from any goroutine at any time.
type Queue struct {
	cfg         config.Config
	live        *lane
	back        *lane       // of the backlog; nil if there never is one
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
	toldOlder   protocol.Told // that the target gets 1.0
	toldPlain   protocol.Told // that the target gets snappy
	synced      func() bool
	every       func(d time.Duration) (ticks <-chan time.Time, stop func())
	empty       [wire.NumVersions]client.Request
	born        time.Time // with a monotonic reading: no step of the wall clock changes what is measured from it

	limit         *pace.BatchLimit
	receiver      [wire.NumVersions]atomic.Int32 // a split.Receiver: what it does with the good part of a refused request
	asked         atomic.Bool                    // whether it takes empty writes
	clock         clock.Clock
	times         clock.Rules             // which samples are sent, by that
	waitsForClock atomic.Bool             // samples that are live wait for the target's clock, or those before them did
	emptyRefused  atomic.Pointer[refusal] // the answer to an empty write which asked for it, and was refused
	retries       atomic.Uint64
	failed        atomic.Uint64
	sent          atomic.Uint64 // samples delivered by this process
	requests      atomic.Uint64
	batches       atomic.Uint64 // requests that delivered samples
	slowed        atomic.Int64  // when an answer last asked to go slower, ns since born; 0: never
	tests         atomic.Int64  // how many held samples were sent as tests
	trust         split.Trust   // in its refusals
	slowedBehind  atomic.Int64  // the same, for the backlog

	toldLimit     atomic.Int64 // when a log line said that requests are too large, ns since born; 0: never
	toldUnwritten atomic.Int64 // when a log line said that a receiver writes less than it accepts, ns since born; 0: never

	refusals pace.OnceAMinute // that were logged

	down atomic.Int64 // unix ns of the outage that was logged last

	mu          sync.Mutex
	state       string // as last observed
	lastError   string
	lastErrorAt time.Time
	lastFailure client.Failure
	lastSuccess time.Time
	lastData    time.Time // when the target last took data

	// taken is the newest sample, by its own time, that was delivered: it may be sent again
	// everywhere. It is its series' newest at the target for as long as the clock is set
	// back, even where the good part of refused batches is stored: the last one that was
	// delivered need not be. Its seq is 0: it belongs to no window.
	taken    point
	hasTaken bool

	// good is the last sample that was delivered, by any shard. While none delivers anything
	// it is its series' newest at the target. Its seq is 0.
	good    point
	hasGood bool
	// refusedAsLate is the last sample that the receiver's database refused, alone, for its order or age, in any
	// shard. The target refuses it again in these words as long as that database answers. Its seq is 0.
	refusedAsLate    point
	hasRefusedAsLate bool
}

// setDefaults fills in the optional fields that nothing else replaces.
func (o *Options) setDefaults() {
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	if o.Encoders == nil {
		o.Encoders = NewEncoderPool()
	}
	if o.ClockSynced == nil {
		o.ClockSynced = func() bool { return false }
	}
	if o.Every == nil {
		o.Every = func(d time.Duration) (<-chan time.Time, func()) { t := time.NewTicker(d); return t.C, t.Stop }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// New makes a queue. It reads the savepoint: what an earlier process may have sent is
// treated with care.
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
	q.recallTaken()
	q.live = newLane(q, o.Source, &o)
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

// timesOf are the rules of an entry about the time of samples.
func timesOf(c *config.Config) clock.Rules {
	return clock.Rules{
		AgeLimit: time.Duration(c.Queue.SampleAgeLimit), FutureLimit: time.Duration(c.Target.FutureLimit),
		Wait: c.Target.OnFuture == config.FutureWait,
	}
}

// minShards and maxShards are powers of two, so that a shard's samples were one shard's,
// or some shards', whatever the number was before.
func (q *Queue) minShards() int { return config.ShardsInUse(q.cfg.Queue.MinShards) }
func (q *Queue) maxShards() int { return config.ShardsInUse(q.cfg.Queue.MaxShards) }

// Run delivers until ctx ends; then it sends what is waiting, once, if the target takes data
// (see [window.close]), and requests under way get a moment to end: at most 1.1 s in all.
// Everything else stays in the log. It returns nil after ctx has ended, when the log is closed, or
// the error that makes going on senseless. All goroutines have ended.
func (q *Queue) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var others sync.WaitGroup
	defer func() { stop(); others.Wait(); q.quarantineLetters(true); q.saveLate(true) }()
	others.Go(func() { q.meta.Run(ctx) })
	if q.back != nil {
		others.Go(func() { q.back.runBehind(ctx) })
	}
	return q.live.run(ctx)
}

// Poke makes the target due now if it is held or waits to retry.
func (q *Queue) Poke() { q.gate.Poke() }

// CredentialsChanged makes the target due now if it is held or waits to retry, as what it refused may be
// allowed now, but not before the time for which it asked to be left in peace.
func (q *Queue) CredentialsChanged() { q.gate.Retry() }

// send sends a request and notes what every answer tells.
func (q *Queue) send(ctx context.Context, r client.Request) client.Answer {
	q.requests.Add(1)
	a := q.sender.Send(ctx, r)
	a.Version, a.Compression, a.Samples = r.Version, r.Compression, r.Samples
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
	q.learnVersion(protocol.Choice{Version: v}, a, client.Classify(a, config.Policy{}))
	return a
}

// mayGroup reports whether several samples of a series may share a request. When one is
// refused, it must be possible to find out what became of it: not at a receiver that
// keeps the good part, where all but the newest samples are late then, nor where no
// empty write can tell whether the refusal meant the samples. With on_refusal: drop a refusal is the
// end of all samples of the request.
func (q *Queue) mayGroup() bool {
	return q.kind() != split.KeepsGood && (q.gate.TakesEmpty() || q.cfg.Target.OnRefusal == config.RefusalDrop)
}

// kind is what the target does with the good part of a refused request: as 2.0, Prometheus
// stores it, as 1.0 nothing.
func (q *Queue) kind() split.Receiver { return split.Receiver(q.receiver[q.proto.Version()].Load()) }

// learn remembers what the receiver does with the good part of a refused request.
func (q *Queue) learn(r split.Receiver) {
	q.receiver[q.proto.Version()].Store(int32(r))
	q.log.Debug("Learnt what the receiver does with a refused request", slog.Bool("keeps_good_part", r == split.KeepsGood))
}

// delivered notes a success. which says that these points are those that were delivered, and not only as many.
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
	if sample >= 0 && (!q.hasTaken || points[sample].t >= q.taken.t) {
		q.taken, q.hasTaken = points[sample], true
		q.taken.seq = 0
	}
}

// takenBefore returns a sample that the target took before, when it is its turn as a test:
// each second time, after a few of those that wait were refused. These may all be bad, or late
// because the clock was set back.
func (q *Queue) takenBefore() (point, bool) {
	n := q.tests.Load()
	if n < takenFrom || n%2 == 0 {
		return point{}, false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.hasTaken {
		q.tests.Add(1)
	}
	return q.taken, q.hasTaken
}

// sawGood notes the last sample of what was delivered.
func (q *Queue) sawGood(p point) {
	p.seq = 0
	q.mu.Lock()
	defer q.mu.Unlock()
	q.good, q.hasGood = p, true
}

// lastGood returns the last sample that any shard delivered, or one of an earlier process.
func (q *Queue) lastGood() (point, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.hasGood {
		return q.taken, q.hasTaken
	}
	return q.good, q.hasGood
}

// lastLate returns the last sample that the receiver's database refused as late, in any shard.
func (q *Queue) lastLate() (point, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.refusedAsLate, q.hasRefusedAsLate
}

func (q *Queue) noteLate(p point) {
	p.seq = 0
	q.mu.Lock()
	defer q.mu.Unlock()
	q.refusedAsLate, q.hasRefusedAsLate = p, true
}

func (q *Queue) deliveredSince(t time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lastData.After(t)
}

// note remembers an error for the status; the log tells transitions only.
func (q *Queue) note(text string) { q.noteFailure(text, client.NoFailure) }

func (q *Queue) noteFailure(text string, f client.Failure) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lastError, q.lastErrorAt, q.lastFailure = text, time.Now(), f
}

// noteAnswer remembers an answer that is an error. A 2xx that stores nothing of remote write
// 2.0 is none: the target gets 1.0 for it, and [Status.Fallback] tells why.
func (q *Queue) noteAnswer(a client.Answer) {
	if a.Version != wire.V2 || !a.Accepted() {
		q.noteFailure(a.String(), a.Failure)
	}
}

// sleep waits for d or ctx, whose error it returns.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
