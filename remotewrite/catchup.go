package remotewrite

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/gate"
	"hwsagent/wal"
)

// With catch_up: live_first, the samples that a target missed while it was down go to a second lane once it accepts
// data again, so that fresh samples arrive at once. docs/adr has the reasons.

const (
	// catchUpFrom is the age from which a sample counts as backlog.
	catchUpFrom = 30 * time.Second
	// catchUpTimes is how many times a backlog must wait to get a lane of its own; see [Queue.backlogFrom].
	catchUpTimes = 2
	// drainFor is how long the present window may take to drain when its lane splits.
	drainFor = 2 * time.Second
)

// errSplit ends a window whose samples go to the backlog.
var errSplit = errors.New("the newest samples come first")

// splitDue reports whether the waiting samples are so many, and so old, that fresh samples should not wait for them.
// The target must accept data, and be known to take old samples: else delivery is in order.
func (l *lane) splitDue(now time.Time, v gate.View) bool {
	well := v.State == gate.Open && l.takesOld.Load()
	if l.behind || l.split == nil || l.cfg.Target.CatchUp != config.LiveFirst || !well || now.Before(l.noSplit) {
		return false
	}
	return l.readAge(now) >= catchUpFrom && backlog(l.read.Load().mark, l.source.Head()) >= catchUpTimes*l.backlogFrom()
}

// splitIfDue hands the waiting samples to the backlog's lane if the window that has ended asked for it. That window
// reports no more outcomes.
func (l *lane) splitIfDue() {
	if !l.splitting.Swap(false) {
		return
	}
	if !l.split() {
		l.noSplit = time.Now().Add(time.Minute) // the log refused: the backlog may have too many pieces
		return
	}
	l.rewind() // the entries that the window has read belong to the backlog now
	l.log.Info("The newest samples are sent first; the backlog follows beside them")
	select {
	case l.back.wake <- struct{}{}:
	default:
	}
}

// runBehind delivers one backlog after the other until ctx ends or the log is closed.
func (l *lane) runBehind(ctx context.Context) {
	for ctx.Err() == nil {
		if _, ok := l.source.Reach(); !ok {
			select {
			case <-ctx.Done():
			case <-l.wake:
			}
			continue
		}
		l.rewind()
		err := l.runWindow(ctx)
		switch {
		case ctx.Err() != nil, errors.Is(err, wal.ErrClosed):
			return
		case errors.Is(err, errReshard):
			if _, more := l.source.Reach(); !more {
				l.log.Info("The backlog is delivered")
				l.cache = l.empty()
			}
		case errors.Is(err, errLetGo), errors.Is(err, errHeld):
			l.source.Release()
			l.cache.sweep()
			l.gate.AwaitOpen(ctx, gate.LongDown)
		default:
			l.note(err.Error())
			l.log.Error("Reading the backlog failed; trying again", slog.Any("err", err))
			_ = gate.Sleep(ctx, time.Second) // the loop checks ctx
		}
	}
}

// watchBehind ends the window of a backlog when the target has been down for long.
func (w *window) watchBehind(ctx context.Context, end context.CancelCauseFunc, before uint64) {
	ticks, stop := w.lane.every(tick)
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
		if v := w.lane.gate.View(); v.Troubles > before && v.LongDown(time.Now()) {
			end(errLetGo)
			return
		}
	}
}

// failed gives p back after a failure that may pass. While live requests succeed, a failed request of the backlog slows
// down only the backlog: one batch may be too much, or be what the receiver fails at.
func (l *lane) failed(p gate.Pass, a client.Answer) {
	if !p.Behind || a.Status == 0 {
		l.gate.Failed(p, a.Why(), a.RetryAfter, a.Status != 0)
		return
	}
	l.gate.Release(p)
	l.rested = time.Now().Add(max(l.pauses.Next(l.gate.Random(), false), gate.RetryLate(a.RetryAfter, l.gate.Random())))
}
