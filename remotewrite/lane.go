package remotewrite

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/givenup"
	"hwsagent/remotewrite/pace"
	"hwsagent/remotewrite/tenant"
	"hwsagent/remotewrite/wire"
	"hwsagent/wal"
)

// lane delivers one stretch of the log, in order, window by window. A queue has one: what
// is not delivered. One that lets the newest data go first has a second one, for what that
// left behind. Everything that is the target's (gate, clock, protocol, account) is the
// queue's and both lanes'.
type lane struct {
	*Queue
	source Source
	behind bool // this is the backlog's
	cache  *seriesCache
	empty  func() *seriesCache // makes one

	givenUp givenup.Book

	refusesSeries atomic.Bool // there is a refused series, or was; see standing.go
	quarantine    quarantined

	// Written by the lane's goroutine only, between windows.
	stored wal.Mark // samples up to here may be stored already
	spread int      // over how many shards they may be

	growth pace.Growth // of the goroutine that watches the present window

	// Of the goroutine that reads.
	mayRead time.Time  // not before, for the rate limit
	unread  *wal.Entry // was read, and is not in a window: its samples wait for the target's clock. Valid until the source is asked for another
	waited  bool       // samples of the entry that is read waited for the target's clock

	splitting   atomic.Bool   // the present window ends for a split
	refusedLate atomic.Bool   // the target refuses the backlog for being late
	wake        chan struct{} // of the backlog's: there may be one
	noSplit     time.Time     // none before: there were too many
	splitIn     time.Time     // when the outage began in which it was split last; of the goroutine that watches

	shards atomic.Int32 // of the present window
	window atomic.Pointer[window]
	read   atomic.Pointer[readTo]

	// Of the backlog's shard.
	rested time.Time    // it sends no request before
	pauses pace.Backoff // between its requests that fail, see failed
}

// readTo is the end of the last entry that was read, and the newest timestamp in it.
type readTo struct {
	mark wal.Mark
	maxT int64 // milliseconds; 0 if not known
}

// newLane makes a lane. It asks how far the source has come: what an earlier process may
// have sent is treated with care.
func newLane(q *Queue, source Source, o *Options) *lane {
	l := &lane{
		Queue: q, source: source, spread: 1,
		wake:   make(chan struct{}, 1),
		pauses: pace.Backoff{Min: time.Duration(q.cfg.Queue.MinBackoff), Max: time.Duration(q.cfg.Queue.MaxBackoff)},
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
	l.quarantine.forget(uint64(q.born.UnixNano()))
	l.shards.Store(1) // a backlog's share
	l.growth = pace.Growth{Shards: q.minShards(), Min: q.minShards(), Max: q.maxShards()}
	reach, _ := source.Reach()
	l.read.Store(&readTo{mark: reach.Acked})
	return l
}

// forget forgets which series there are, and which of them the target refuses. Between windows, when nothing is left to deliver.
func (l *lane) forget() {
	l.quarantineLetters(true)
	l.quarantine.forget(uint64(l.sinceBorn()))
	l.cache = l.empty()
	l.refusesSeries.Store(false)
}

// doubt takes what may have been sent before for such.
func (l *lane) doubt() {
	reach, _ := l.source.Reach()
	if reach.High.Commit <= reach.Acked.Commit {
		return
	}
	l.stored = reach.High
	if l.spread = reach.Shards; l.spread < 1 || l.spread > config.MaxShards || l.spread&(l.spread-1) != 0 {
		l.spread = config.MaxShards // unknown: none can have been more
	}
	l.recall()
}

// run delivers until ctx ends: then it returns nil, as it does when the log is closed.
func (l *lane) run(ctx context.Context) error {
	for {
		err := l.runWindow(ctx)
		if !errors.Is(err, errReshard) || ctx.Err() != nil && l.unread != nil {
			l.rewind()
		}
		switch {
		case ctx.Err() != nil, errors.Is(err, wal.ErrClosed):
			return nil
		case errors.Is(err, errAhead):
		case errors.Is(err, errReshard), errors.Is(err, errSplit):
			l.splitIfDue()
		case errors.Is(err, errLetGo):
			if l.waitDown(ctx) != nil {
				return nil
			}
		default:
			l.note(err.Error())
			l.log.Error("Reading the log failed; trying again", slog.Any("err", err))
			if sleep(ctx, time.Second) != nil {
				return nil
			}
		}
	}
}

func (l *lane) runWindow(ctx context.Context) error {
	n := int(l.shards.Load())
	w := newWindow(l, n)
	l.window.Store(w)
	if !l.behind {
		l.gate.SetLimit(n)
	}
	reach, _ := l.source.Reach()
	if l.stored.Commit <= reach.Acked.Commit {
		l.spread = 1 // of what was unsure nothing is left
		l.givenUp.Recall(nil)
	}
	l.source.SetShards(max(n, l.spread))
	err := w.run(ctx)
	l.window.Store(nil)
	if l.behind {
		return err
	}
	l.metrics.SetPending(0)
	if mark, ok := w.sentMark(); ok {
		l.spread = max(l.spread, n)
		if mark.Commit > l.stored.Commit {
			l.stored = mark
		}
	}
	return err
}

// order is the order of samples in a request: that of time while the lane keeps up with the log, as receivers expect
// it; by series where a batch or more waits to be read, as in an outage's backlog.
func (l *lane) order() order {
	if l.behind || backlog(l.read.Load().mark, l.source.Head()) >= uint64(l.cfg.Queue.MaxSamplesPerSend) {
		return bySeries
	}
	return inTime
}

// mayBeStored reports whether samples of the entry that ends at mark may have been sent
// before, by an earlier process or window. In a backlog that is not asked: who takes late
// data takes it twice, and what is refused there need not be stored.
func (l *lane) mayBeStored(mark wal.Mark) bool { return mark.Commit <= l.stored.Commit }

// moreUnsure reports whether entries that may be stored are still to be read.
func (l *lane) moreUnsure() bool { return l.readBefore(l.stored) }

// readBefore reports whether entries up to m are still to be read.
func (l *lane) readBefore(m wal.Mark) bool { return l.read.Load().mark.Commit < m.Commit }

// readUpTo notes that the reader has reached the end of e. Metadata goes out only while
// the target takes data: it must not knock at a door that is shut. In remote write 2.0 it
// goes with the samples.
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

// charge makes the next reading wait for as long as the rate limit says.
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

// enter waits until a request of the lane may be sent. The backlog's waits for what is live,
// for as long again as its last request took, and while the target is asked too much.
func (l *lane) enter(ctx context.Context) (gate.Pass, error) {
	if !l.behind {
		return l.gate.Enter(ctx)
	}
	for {
		wait := max(time.Until(l.rested), l.coolDown())
		if wait <= 0 {
			return l.gate.EnterBehind(ctx)
		}
		if err := sleep(ctx, wait); err != nil {
			return gate.Pass{}, err
		}
	}
}

// slowDown notes that the target is overloaded: the backlog waits for a while, and if it was
// not the backlog that was too much, no more requests than now go at a time.
func (l *lane) slowDown() {
	l.slowedBehind.Store(max(1, int64(time.Since(l.born))))
	if !l.behind {
		l.Queue.slowDown()
	}
}

// coolDown is how long the backlog waits because the target asked to go slower.
func (l *lane) coolDown() time.Duration {
	last := l.slowedBehind.Load()
	if last == 0 {
		return 0
	}
	return slowFor - (time.Since(l.born) - time.Duration(last))
}

// took notes how long a request of the lane took.
func (l *lane) took(d time.Duration) {
	if l.behind {
		l.rested = time.Now().Add(d)
	}
}
