package remotewrite

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/gate"
	"hwsagent/wal"
)

// Live first: what a target has not got while it was down is left to a second lane, once it
// takes data again, so that fresh samples come at once. See docs/adr for the why.

const (
	// catchUpFrom is how old a sample is at least that counts as backlog.
	catchUpFrom = 30 * time.Second
	// catchUpBatches is how many batches wait at least that are worth a lane of their own.
	catchUpBatches = 2
	// drainFor is how long the window of before may take to end well when its lane splits.
	drainFor = 2 * time.Second
	// askLateAgain is how long a backlog rests that the target refuses for being late.
	askLateAgain = 5 * time.Minute
)

// The ways in which a window ends, besides those of every lane.
var (
	errSplit   = errors.New("the newest samples come first")
	errAllLate = errors.New("the target takes nothing that is so late")
)

// allLate is why a backlog waits that a target refuses.
const allLate = "it refuses its backlog as too late, so that waits: give it an out-of-order window that is long enough, or set catch_up: in_order, which gives up what it refuses"

// splitDue reports whether what waits is so much, and so old, that fresh samples should
// not wait for it. The target takes data; or it is well but for what it is sent, which may be
// due to its age: then once in an outage.
func (l *lane) splitDue(now time.Time, v gate.View) bool {
	well := v.State == gate.Open || v.State == gate.Paused && v.Answered && v.EmptyPassedSince && l.splitIn != v.Since
	if l.behind || l.split == nil || l.cfg.Target.CatchUp != config.LiveFirst || !well || now.Before(l.noSplit) {
		return false
	}
	at := l.read.Load()
	return at.maxT > 0 && now.Sub(time.UnixMilli(at.maxT)) >= catchUpFrom &&
		backlog(at.mark, l.source.Head()) >= uint64(catchUpBatches*l.cfg.Queue.MaxSamplesPerSend)
}

// splitIfDue leaves what waits to the backlog's lane if the window that has ended found
// that it should be. No outcome of that window comes any more.
func (l *lane) splitIfDue() {
	if !l.splitting.Swap(false) {
		return
	}
	if !l.split() {
		l.noSplit = time.Now().Add(time.Minute) // of what is before it there must be less first
		return
	}
	reach, _ := l.source.Reach()
	l.read.Store(&readTo{mark: reach.Acked})
	l.log.Info("The newest samples are sent first; what was missed follows beside them")
	select {
	case l.back.wake <- struct{}{}:
	default:
	}
}

// runBehind delivers backlogs, one after the other, until ctx ends or the log is closed.
func (l *lane) runBehind(ctx context.Context) {
	var told wal.Mark // up to where it had come when the log was told that it is refused
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
				l.log.Info("What was missed is delivered")
				l.forget() // the next backlog may be of another day, and a limit raised meanwhile
			}
		case errors.Is(err, errLetGo), errors.Is(err, errHeld):
			l.gate.AwaitOpen(ctx, letGoAfter)
		case errors.Is(err, errAllLate):
			if reach, _ = l.source.Reach(); told != reach.Acked {
				told = reach.Acked
				l.log.Warn("The target refuses its backlog, and takes what is new", slog.String("why", allLate))
			}
			l.gate.AwaitPoke(ctx, askLateAgain)
		default:
			l.note(err.Error())
			l.log.Error("Reading the backlog failed; trying again", slog.Any("err", err))
			_ = sleep(ctx, time.Second) // ctx is looked at above
		}
	}
}

// watchBehind ends the window of a backlog when the target is down for long.
func (w *window) watchBehind(ctx context.Context, end context.CancelCauseFunc, before uint64) {
	ticks, stop := w.q.every(tick)
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
		if v := w.q.gate.View(); v.Troubles > before && letGo(v, time.Now()) {
			end(errLetGo)
			return
		}
	}
}
