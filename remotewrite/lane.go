package remotewrite

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/tenant"
	"hwsagent/remotewrite/wire"
	"hwsagent/wal"
)

// lane delivers one stretch of the log in order, window by window. A queue has one lane for all undelivered samples.
// With catch_up: live_first it has a second one, for the backlog that a split leaves behind. Both lanes share the state
// of the target (gate, clock, protocol, account), which is the queue's.
type lane struct {
	*Queue
	source Source
	behind bool // this is the backlog's lane
	cache  *seriesCache
	empty  func() *seriesCache // creates a cache

	startedAt wal.Mark // the head of the log when the queue began

	// groups: a window and a request may hold several samples of a series; see rounds.go.
	groups     atomic.Bool
	searches   atomic.Int32 // shards that divide a batch refused in unknown words
	takesOld   atomic.Bool  // the target was asked in this backlog, and takes old samples
	askedOld   time.Time    // when the target was last asked whether it takes old samples; the reader's
	grownSince time.Time    // the backlog was never smaller since; used by the goroutine that watches
	smallest   uint64       // the backlog then
	troubles   uint64       // the gate's, then

	// Written only by the lane's goroutine, between windows.
	high wal.Mark // samples up to here are in doubt: an earlier process or window may have sent them

	growth gate.Growth // used by the goroutine that watches the present window

	// Used by the reader's goroutine.
	mayRead time.Time  // the rate limit allows no reading before
	unread  *wal.Entry // read, but not in a window. Valid until the source's next entry is read

	slowed atomic.Int64 // when an answer last asked to slow down, ns since the queue was born; 0: never

	splitting atomic.Bool   // the present window ends for a split
	wake      chan struct{} // of the backlog's lane: there may be a backlog
	noSplit   time.Time     // no split before: the last one was refused

	shards atomic.Int32 // of a window
	window atomic.Pointer[window]
	read   atomic.Pointer[readTo]

	// Used by the backlog's shard.
	rested time.Time    // no request before
	pauses gate.Backoff // between failed requests, see failed
}

// readTo is the end of the last entry read, and the newest timestamp up to there.
type readTo struct {
	mark wal.Mark
	maxT int64 // milliseconds; 0 if unknown
}

// newLane creates a lane that begins at the source's acknowledged mark.
func newLane(q *Queue, source Source, o *Options) *lane {
	l := &lane{
		Queue: q, source: source, startedAt: source.Head(),
		wake:   make(chan struct{}, 1),
		pauses: gate.Backoff{Min: time.Duration(q.cfg.Queue.MinBackoff), Max: time.Duration(q.cfg.Queue.MaxBackoff)},
	}
	l.empty = func() *seriesCache {
		c := newSeriesCache(o.ExternalLabels, q.cfg.WriteRelabelConfigs)
		if q.proto.Newer() {
			c.forms = wire.NewForms(wire.V2)
		}
		if q.cfg.Role() != config.RoleNone {
			c.tenant = tenant.NewFilter(&q.cfg, o.Tenants)
		}
		return c
	}
	l.cache = l.empty()
	l.shards.Store(1) // a backlog has one shard
	l.growth = gate.Growth{Shards: q.minShards(), Min: q.minShards(), Max: q.maxShards()}
	reach, _ := source.Reach()
	l.read.Store(&readTo{mark: reach.Acked})
	return l
}

// nextEntry returns the entry that the previous window read and did not admit, or the next one of the source.
func (l *lane) nextEntry(ctx context.Context) (*wal.Entry, error) {
	if e := l.unread; e != nil {
		l.unread = nil
		return e, nil
	}
	return l.source.Next(ctx)
}

// rewind restarts the source at the savepoint.
func (l *lane) rewind() {
	l.unread = nil
	l.source.Rewind()
	reach, _ := l.source.Reach()
	l.read.Store(&readTo{mark: reach.Acked})
}

// run delivers until ctx ends or the log is closed.
func (l *lane) run(ctx context.Context) {
	for {
		err := l.runWindow(ctx)
		if !errors.Is(err, errReshard) || ctx.Err() != nil && l.unread != nil {
			l.rewind()
		}
		switch {
		case ctx.Err() != nil, errors.Is(err, wal.ErrClosed):
			return
		case errors.Is(err, errReshard), errors.Is(err, errSplit):
			l.splitIfDue()
		case errors.Is(err, errLetGo):
			l.letGo()
			if l.waitDown(ctx) != nil {
				return
			}
		default:
			l.note(err.Error())
			l.log.Error("Reading the log failed; trying again", slog.Any("err", err))
			if gate.Sleep(ctx, time.Second) != nil {
				return
			}
		}
	}
}

// keepSeries is how long a target that is down keeps its series. To know them again costs as much CPU as to send some samples of each,
// and most outages are shorter. A longer outage must not hold memory.
const keepSeries = 5 * time.Minute

// letGo releases the series of a target that is down, unless it may soon read on.
func (l *lane) letGo() {
	v := l.gate.View()
	next := time.Now()
	if v.Until.After(next) {
		next = v.Until
	}
	if !v.Since.IsZero() && next.Sub(v.Since) >= keepSeries {
		l.source.Release()
	}
}

func (l *lane) runWindow(ctx context.Context) error {
	n := int(l.shards.Load())
	if l.gate.View().State == gate.Held {
		n = 1 // it sends tests only, and picks them from the samples of all series
	}
	if reach, ok := l.source.Reach(); ok {
		l.high = reach.High
	}
	w := newWindow(l, n)
	l.window.Store(w)
	if !l.behind {
		l.gate.SetLimit(n)
	}
	err := w.run(ctx)
	l.window.Store(nil)
	if l.behind {
		return err
	}
	l.metrics.SetPending(0)
	return err
}

// order returns the order of samples in a request: by time while the lane keeps up with the log, as receivers expect;
// by series for a backlog, or while a batch or more waits to be read.
func (l *lane) order() order {
	if l.behind || l.isBehind() {
		return bySeries
	}
	return inTime
}

// readBefore reports whether entries up to m are still to be read.
func (l *lane) readBefore(m wal.Mark) bool { return l.read.Load().mark.Commit < m.Commit }

// readAge returns the age of the newest sample of the entry that was read last, 0 if that is unknown.
func (l *lane) readAge(now time.Time) time.Duration {
	at := l.read.Load()
	if at.maxT <= 0 {
		return 0
	}
	return now.Sub(time.UnixMilli(at.maxT))
}

// readUpTo records that the reader has reached the end of e. It offers metadata only while the target accepts data, so
// that a target that is down gets no requests for it. In remote write 2.0 metadata goes with the samples.
func (l *lane) readUpTo(e *wal.Entry) {
	now, at := time.Now(), readTo{mark: e.End, maxT: l.read.Load().maxT}
	if e.Count() > 0 {
		at.maxT = e.MaxT
		l.charge(now, e)
	}
	l.read.Store(&at)
	if l.behind {
		return
	}
	if e.Count() > 0 {
		l.metrics.Read(e.MaxT)
	}
	if l.meta.Due(now) && l.proto.Version() == wire.V1 && l.gate.View().State == gate.Open {
		l.meta.Offer(now, l.cache.families)
	}
}

// charge delays the next read for as long as the rate limit demands.
func (l *lane) charge(now time.Time, e *wal.Entry) {
	rate := l.cfg.Target.CatchUpRateLimit
	if rate <= 0 || !l.behind && now.Sub(time.UnixMilli(e.MaxT)) < catchUpFrom {
		return
	}
	if l.mayRead.Before(now) {
		l.mayRead = now
	}
	l.mayRead = l.mayRead.Add(time.Duration(float64(e.Count()) / float64(rate) * float64(time.Second)))
}

// enter waits until the lane may send a request. The backlog gives way to live samples: it pauses for as long as its
// last request took, and while the target is overloaded.
func (l *lane) enter(ctx context.Context) (gate.Pass, error) {
	if !l.behind {
		return l.gate.Enter(ctx)
	}
	for {
		wait := max(time.Until(l.rested), l.coolDown())
		if wait <= 0 {
			return l.gate.EnterBehind(ctx)
		}
		if err := gate.Sleep(ctx, wait); err != nil {
			return gate.Pass{}, err
		}
	}
}

// slowDown records that the target is overloaded. For a while the backlog pauses. If the live samples were the cause, the
// lane also adds no concurrent requests and no shards.
func (l *lane) slowDown() { l.slowed.Store(l.sinceBorn()) }

// coolDown returns the rest of that pause, counted from the lane's own requests and from the live ones.
func (l *lane) coolDown() time.Duration {
	last := max(l.slowed.Load(), l.live.slowed.Load())
	if last == 0 {
		return 0
	}
	return slowFor - time.Duration(l.sinceBorn()-last)
}

// took records how long a request of the backlog took.
func (l *lane) took(d time.Duration) {
	if l.behind {
		l.rested = time.Now().Add(d)
	}
}
