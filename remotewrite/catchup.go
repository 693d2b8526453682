package remotewrite

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/pace"
	"hwsagent/wal"
)

// With catch_up: live_first, the samples that a target missed while it was down go to a second lane once it accepts
// data again, so that fresh samples arrive at once. docs/adr has the reasons.

const (
	// catchUpFrom is the age from which a sample counts as backlog.
	catchUpFrom = 30 * time.Second
	// catchUpBatches is the smallest number of waiting batches that gets a lane of its own.
	catchUpBatches = 2
	// drainFor is how long the present window may take to drain when its lane splits.
	drainFor = 2 * time.Second
	// askLateAgain is how long a backlog pauses after the target refused it as too late.
	askLateAgain = 5 * time.Minute
)

// Reasons for the end of a window that only exist with a backlog.
var (
	errSplit   = errors.New("the newest samples come first")
	errAllLate = errors.New("the target accepts no sample that is so late")
)

// allLate explains why a refused backlog waits.
const allLate = "it refuses its backlog as too late, so the backlog waits: give the receiver a longer out-of-order window, or set catch_up: in_order, which gives up the refused samples"

// splitDue reports whether the waiting samples are so many, and so old, that fresh samples should not wait for them.
// The target must accept data. Or it fails only at samples, perhaps because of their age, and accepts empty writes:
// then one split per outage.
func (l *lane) splitDue(now time.Time, v gate.View) bool {
	well := v.State == gate.Open || v.State == gate.Paused && v.Answered && v.EmptyPassedSince && l.splitIn != v.Since
	if l.behind || l.split == nil || l.cfg.Target.CatchUp != config.LiveFirst || !well || now.Before(l.noSplit) {
		return false
	}
	at := l.read.Load()
	return at.maxT > 0 && now.Sub(time.UnixMilli(at.maxT)) >= catchUpFrom &&
		backlog(at.mark, l.source.Head()) >= uint64(catchUpBatches*l.cfg.Queue.MaxSamplesPerSend)
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
	l.rewind() // an entry that waits for the target's clock belongs to the backlog now
	l.log.Info("The newest samples are sent first; the backlog follows beside them")
	select {
	case l.back.wake <- struct{}{}:
	default:
	}
}

// runBehind delivers one backlog after the other until ctx ends or the log is closed.
func (l *lane) runBehind(ctx context.Context) {
	var told wal.Mark // the acknowledged mark when the refusal was last logged
	for ctx.Err() == nil {
		reach, ok := l.source.Reach()
		if !ok {
			select {
			case <-ctx.Done():
			case <-l.wake:
			}
			continue
		}
		l.rewind()
		err := l.runWindow(ctx)
		l.refusedLate.Store(errors.Is(err, errAllLate))
		switch {
		case ctx.Err() != nil, errors.Is(err, wal.ErrClosed):
			return
		case errors.Is(err, errAhead):
		case errors.Is(err, errReshard):
			if _, more := l.source.Reach(); !more {
				l.log.Info("The backlog is delivered")
				l.forget() // the next backlog may come days later, when the receiver's limit has been raised
			}
		case errors.Is(err, errLetGo), errors.Is(err, errHeld):
			l.releaseSeries()
			l.cache.sweep()
			l.gate.AwaitOpen(ctx, gate.LongDown)
		case errors.Is(err, errAllLate):
			if reach, _ = l.source.Reach(); told != reach.Acked {
				told = reach.Acked
				l.log.Warn("The target refuses its backlog, and accepts new samples", slog.String("why", allLate))
			}
			l.gate.AwaitPoke(ctx, askLateAgain)
		default:
			l.note(err.Error())
			l.log.Error("Reading the backlog failed; trying again", slog.Any("err", err))
			_ = pace.Sleep(ctx, time.Second) // the loop checks ctx
		}
	}
}

// watchBehind ends the window of a backlog when the target has been down for long.
func (w *window) watchBehind(ctx context.Context, end context.CancelCauseFunc, before uint64) {
	ticks, stop := w.q.every(tick)
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
		if v := w.q.gate.View(); v.Troubles > before && v.LongDown(time.Now()) {
			end(errLetGo)
			return
		}
	}
}
