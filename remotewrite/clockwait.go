package remotewrite

import (
	"context"
	"errors"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/clock"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/pace"
	"hwsagent/remotewrite/protocol"
	"hwsagent/remotewrite/wire"
	"hwsagent/wal"
)

// Samples that are ahead of the target's clock by more than future_limit, but not of this host's, wait: the target's
// clock is slow, or this host's clock is fast and not corrected yet. The reader stops before the first commit with one
// of them. It sends no sample of that commit, and all earlier commits get their outcomes.

// errAhead ends a window that holds waiting samples: they were read before the target had sent its time.
var errAhead = errors.New("samples wait for the target's clock")

// askClockEvery is how often a target is asked for its time while samples wait: its clock may have been corrected.
const askClockEvery = time.Minute

// nextEntry returns the entry that waited for the clock when the previous window ended, or the next one of the source.
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

// aheadFor returns how long it takes, as far as is known, until the target's clock admits every sample of the entry
// that is sent and not dropped; 0 if no sample waits.
func (q *lane) aheadFor(e *wal.Entry) time.Duration {
	c := q.clock.Reading()
	if c == nil || !c.Tells() {
		return 0
	}
	l := q.times.Limits(c)
	if e.MaxT <= l.Newest || l.Newest == l.Future {
		return 0
	}
	newest := l.Newest
	look := func(s *wal.Series, t int64) {
		if !l.Waits(t) {
			return
		}
		if to := q.cache.at(s, e.End.Commit); to != nil && !to.dropped() {
			newest = max(newest, t)
		}
	}
	for i := range e.Samples {
		look(e.Samples[i].Series, e.Samples[i].T)
	}
	for i := range e.Histograms {
		look(e.Histograms[i].Series, e.Histograms[i].T)
	}
	return time.Duration(newest-l.Newest) * time.Millisecond
}

// awaitClock waits until no sample of the entry is ahead of the target's clock. The error is ctx's.
func (w *window) awaitClock(ctx context.Context, e *wal.Entry) error {
	for {
		wait := w.q.aheadFor(e)
		if wait <= 0 {
			if !w.q.behind {
				w.q.setWaits(w.q.waited)
			}
			w.q.waited = false
			return nil
		}
		w.q.waited = true
		if !w.q.behind {
			w.q.setWaits(true)
		}
		w.flush()
		known := w.q.clock.Reading()
		if due := askClockEvery - known.Age(); due > 0 && !known.Slipped() {
			wait = min(wait, due)
		} else if err := w.askClock(ctx); err != nil {
			return err
		} else if wait = min(wait, askClockEvery); w.q.clock.Reading() != known {
			continue
		}
		if err := pace.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// askClock asks the target for its time: with the last sample that it accepted, or with an empty write if there is
// none. A held target gets an empty write as a test; the shards test it with their samples. The error is ctx's.
func (w *window) askClock(ctx context.Context) error {
	p, err := w.q.enter(ctx)
	if err != nil {
		return err
	}
	if taken := w.q.lastGood(); taken.exists() && !p.Test {
		return w.q.askByTaken(ctx, p, taken)
	}
	if !p.Test {
		return w.q.askTime(ctx, ctx, p)
	}
	a := w.q.sendEmpty(ctx, w.q.proto.ForEmpty(true))
	switch {
	case ctx.Err() != nil:
		w.q.gate.Release(p)
		return ctx.Err()
	case a.Accepted():
		w.q.gate.Passed(p)
	default:
		w.q.noteAnswer(a)
		w.q.refused(p, a)
	}
	return nil
}

// askByTaken sends a sample again that the target accepted, to learn its time from the answer, because some targets
// fail at empty writes. It gives p back. The error is ctx's.
func (q *Queue) askByTaken(ctx context.Context, p gate.Pass, taken point) error {
	c := q.proto.ChooseTest(protocol.ByTaken)
	body, _ := q.encoders.body(nil, c.Version, wire.Snappy, []point{taken}, inTime)
	a := q.send(ctx, client.Request{Body: body, Version: c.Version, Samples: 1})
	v := a.Verdict
	q.learnVersion(c, a, v)
	if failed, err := q.questionFailed(ctx, p, a); failed {
		return err
	}
	if v == client.Delivered {
		q.gate.Delivered(p)
	} else { // the target refuses the duplicate, or a sample this old
		q.noteAnswer(a)
		q.gate.Release(p)
	}
	q.questionAnswered(a)
	return nil
}

// setWaits records whether live samples wait for the target's clock, and since when.
func (q *Queue) setWaits(waits bool) {
	if q.waitsForClock.Swap(waits) != waits && waits {
		q.waitsSince.Store(time.Now().UnixNano())
	}
}

// awaitsClock fills in why, since when and until when samples wait for the target's clock.
func (q *Queue) awaitsClock(s *Status) {
	s.Failure = client.WaitsForClock(q.clockWhy())
	s.DownSince = time.Unix(0, q.waitsSince.Load())
	if r := q.clock.Reading(); r != nil {
		s.NextTry = time.Now().Add(max(0, askClockEvery-r.Age()))
	}
}

// clockWhy explains that samples wait for the target's clock, or that it is not believed; else it returns "".
func (q *Queue) clockWhy() string {
	skew, known := q.clock.Skew()
	switch {
	case !known:
		return ""
	case q.clock.Reading().Absurd():
		return clock.Words(skew) + ", which is synchronised: the receiver's is not believed"
	case q.waitsForClock.Load():
		return clock.Words(skew) + ": samples wait until it reaches their time, less future_limit"
	}
	return ""
}
