package remotewrite

import (
	"context"
	"log/slog"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/wire"
	"hwsagent/wal"
)

const (
	tick = time.Second

	// dataEvery is how often waiting samples are tried after the window was discarded.
	dataEvery = time.Minute

	// slowFor is how long no shards are added after the target asked to slow down.
	slowFor = 10 * time.Second
)

// watch ends the window when the target has been down for long, or when the number of shards should change. before is
// the number of troubles when the window began.
func (w *window) watch(ctx context.Context, end context.CancelCauseFunc, before uint64) {
	l := w.lane
	if l.behind {
		w.watchBehind(ctx, end, before)
		return
	}
	l.growth.Begin()
	var draining time.Time
	troubles := before
	ticks, stop := l.every(tick)
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
		now := time.Now()
		v := l.gate.View()
		st := l.Status()
		l.observe(st)
		l.mutes.Sweep(now)
		l.watchBacklog(now, st.Backlog, v)
		if v.Troubles > before && v.LongDown(now) {
			level := slog.LevelDebug
			if l.down.Swap(v.Since.UnixNano()) != v.Since.UnixNano() {
				level = slog.LevelInfo // once per outage
			}
			l.log.LogAttrs(ctx, level, "The target is down; its samples wait in the log", slog.String("why", v.Why))
			end(errLetGo)
			return
		}
		slow := l.coolDown() > 0
		if w.draining.Load() {
			// Keep watching: the target may still go down. A split waits for the drain no longer than drainFor.
			if l.splitting.Load() && now.Sub(draining) >= drainFor {
				end(errSplit)
			}
			continue
		}
		if l.splitDue(now, v) {
			draining = now
			l.splitting.Store(true)
			w.drain()
			continue
		}
		seen := gate.Seen{
			Behind: st.State == StateBehind && st.Backlog >= l.backlogFrom(),
			Open:   v.State == gate.Open && v.Troubles == troubles, // requests that fail go one at a time, however many shards there are
			Slow:   slow, Samples: st.Sent, Requests: l.batches.Load(),
		}
		troubles = v.Troubles
		if n := l.growth.Next(seen); n != len(w.shards) {
			l.shards.Store(int32(n))
			w.drain()
		} else if !slow {
			l.gate.Widen()
		}
	}
}

// waitDown waits, holding no samples, until it is worthwhile to read the log again: the target accepts the sample again that
// it accepted last, or that failed last; or it is held, and must be tested with waiting samples; or these are due. The error is ctx's.
func (q *Queue) waitDown(ctx context.Context) error {
	g := q.gate
	again := time.Now().Add(dataEvery)
	for {
		q.live.cache.sweep() // the log's series go on ending
		p, err := g.Enter(ctx)
		if err != nil {
			return err
		}
		good := q.lastGood()
		if !good.exists() {
			good = q.last(&q.tried)
		}
		if p.Test || !good.exists() || !time.Now().Before(again) {
			g.Release(p)
			return nil
		}
		a := q.sendAlone(ctx, good)
		q.observe(q.Status())
		switch {
		case ctx.Err() != nil:
			g.Release(p)
			return ctx.Err()
		case a.Verdict == client.Delivered:
			q.setLast(&q.good, good)
			g.Delivered(p)
			return nil
		case a.Verdict == client.Retry:
			g.Failed(p, a.Why(), a.RetryAfter, a.Status != 0)
		case a.Verdict == client.Hold:
			q.refused(p, a)
		default:
			g.Release(p)
			return nil
		}
		q.noteAnswer(a)
	}
}

// sendAlone sends a sample again, in the version of a test of a held target.
func (q *Queue) sendAlone(ctx context.Context, p point) client.Answer {
	one := &parcel{points: []point{p}, role: asControl}
	c := q.chooseTest(one, int(q.tests.Add(1)-1), false)
	body, _ := q.encoders.body(nil, c.Version, wire.Snappy, one.points, inTime, false)
	a := q.send(ctx, client.Request{Body: body, Version: c.Version, Samples: 1})
	if c.Once && a.Verdict == client.Delivered {
		q.fallBack(takesOlder)
	}
	return a
}

// observe copies the status into the metrics, and logs a change of state.
func (q *Queue) observe(s Status) {
	q.metrics.SetState(s.State)
	q.metrics.SetPending(s.Window)
	q.metrics.SetProtocol(q.proto.Version())
	q.metrics.SetCompression(q.compression.InUse())
	q.metrics.SetShards(s.Shards, s.Shards)
	series := make(map[string]int, len(s.Muted))
	for _, x := range s.Muted {
		series[x.Reason] = x.Series
	}
	q.metrics.SetMuted(series)
	q.mu.Lock()
	before, since := q.state, q.observed
	q.state, q.observed = s.State, time.Now()
	q.mu.Unlock()
	if before == StateHeld { // calls come less often than each tick while the queue holds no samples
		q.metrics.Held(time.Since(since))
	}
	if before == s.State || before == "" && s.State == StateStarting {
		return
	}
	level := slog.LevelInfo
	attrs := []slog.Attr{slog.String("state", s.State)}
	if before != "" {
		attrs = append(attrs, slog.String("before", before))
	}
	if s.Why != "" {
		attrs = append(attrs, slog.String("why", s.Why))
	}
	if s.State == StateHeld || s.State == StateRetrying {
		level = slog.LevelWarn
	}
	q.log.LogAttrs(context.Background(), level, "The target's state changed", attrs...)
}

// The states of a target.
const (
	StateStarting = "starting" // no request has succeeded yet
	StateOK       = "ok"       // samples are delivered as they are read
	StateBehind   = "behind"   // delivering, with a backlog in the log
	StateRetrying = "retrying" // requests fail for a reason that may pass
	StateHeld     = "held"     // the receiver refuses requests as such, or samples wait for its clock; nothing is dropped
)

// Status is a snapshot of a queue.
type Status struct {
	State string // one of the State constants
	Why   string // in words: why it is retrying, held or refusing its backlog, or which limit or clock error affects it

	Protocol      string    // the version of remote write in use: "1.0" or "2.0"
	Fallback      string    // in words: why 1.0 is in use although 2.0 was asked for; otherwise ""
	FallbackUntil time.Time // when 2.0 is tried again; zero without a fallback

	Compression string // in use for requests with samples: "snappy" or "zstd"
	Plain       string // in words: why snappy is in use although zstd was asked for; otherwise ""

	Shards    int
	MaxShards int
	BatchSize int    // how many samples a request may have at present
	Window    uint64 // samples read, but without an outcome
	Backlog   uint64 // live samples in the log that are not read yet
	Missed    uint64 // samples of the second lane without an outcome (see [config.LiveFirst])
	Sent      uint64 // samples delivered since the queue was created
	Requests  uint64 // of any kind, since then
	Retries   uint64 // requests with samples that were sent before
	Failed    uint64 // requests of any kind that the receiver did not accept

	LastSuccess time.Time
	LastError   string
	LastErrorAt time.Time
	Failure     client.Failure // the cause of LastError, if that is an answer or the lack of one
	LastRefusal Refusal        // the last error that was a refusal of samples, whatever came after it
	DownSince   time.Time      // zero unless retrying or held
	NextTry     time.Time      // zero unless the target is held or pausing

	Muted []Muted // series that are not sent at present, by reason

	AwaitsClock    bool          // held because it refuses samples as ahead of its clock
	ClockSkew      time.Duration // this host's clock minus the receiver's
	ClockSkewKnown bool
}

// Refusal is an answer that refused samples.
type Refusal struct {
	Text string
	At   time.Time
}

// Status returns the status of the target.
func (q *Queue) Status() Status {
	v := q.gate.View()
	head := q.live.source.Head()
	s := Status{
		Shards: int(q.live.shards.Load()), MaxShards: q.maxShards(), BatchSize: q.batchLimit(),
		Sent: q.sent.Load(), Requests: q.requests.Load(), Retries: q.retries.Load(), Failed: q.failed.Load(),
		DownSince: v.Since, Why: v.Why,
	}
	s.ClockSkew, s.ClockSkewKnown = q.clock.skew()
	s.Protocol = q.proto.Version().String()
	s.Fallback, s.FallbackUntil = q.proto.Fallback()
	s.Compression = wire.Snappy.String()
	if q.proto.Version() == wire.V1 {
		s.Compression = q.compression.InUse().String()
	}
	s.Plain = q.compression.Fallback()
	if w := q.live.window.Load(); w != nil {
		s.Window = w.open()
	}
	q.mu.Lock()
	s.LastSuccess, s.LastError, s.LastErrorAt, s.Failure, s.LastRefusal = q.lastSuccess, q.lastError, q.lastErrorAt, q.lastFailure, q.lastRefusal
	q.mu.Unlock()
	s.Backlog = backlog(q.live.read.Load().mark, head)
	s.Missed, s.Muted = q.missed(), q.muted()
	switch {
	case v.State == gate.Held:
		ahead := q.last(&q.ahead)
		s.State, s.AwaitsClock = StateHeld, ahead.exists()
	case !v.Since.IsZero():
		s.State = StateRetrying
	case s.Backlog >= q.backlogFrom():
		s.State = StateBehind
	case s.Missed > 0:
		s.State = StateBehind
	case s.LastSuccess.IsZero() && (q.cfg.Role() != config.RoleDefault || q.cfg.Tenant() != ""):
		s.State = StateStarting
	default:
		s.State = StateOK
	}
	if s.Why == "" {
		s.Why = q.limit.Why()
	}
	if why := q.apart.Load(); s.Why == "" && why != nil {
		s.Why = *why
	}
	if v.State == gate.Held || v.State == gate.Paused {
		s.NextTry = v.Until
	}
	return s
}

// missed returns how many samples of the backlog have no outcome yet.
func (q *Queue) missed() uint64 {
	if q.back == nil {
		return 0
	}
	reach, _ := q.back.source.Reach()
	return reach.Missed
}

// leastBacklog is how many waiting samples are a backlog, whatever the size of requests: a small host has few in a round.
const leastBacklog = 2000

// backlogFrom returns from how many waiting samples the target counts as behind.
func (q *Queue) backlogFrom() uint64 { return uint64(min(q.cfg.Queue.MaxSamplesPerSend, leastBacklog)) } // #nosec G115 -- at least 1

// backlog returns how many samples lie between two marks.
func backlog(read, head wal.Mark) uint64 {
	if head.Total < read.Total {
		return 0
	}
	return head.Total - read.Total
}
