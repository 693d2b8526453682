package remotewrite

import (
	"context"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/gate"
	"hwsagent/wal/queue"
)

// A window holds one sample of a series, from the savepoint to the newest request. So what a kill leaves in doubt is sent
// again as it was, and receivers accept an exact repetition of a series' newest sample. A backlog at a target that takes old
// samples has no such limit; nor has one that grows under it.

const (
	// askOldEvery is how often a target with a backlog is asked at most whether it takes old samples.
	askOldEvery = time.Minute
	// askOldFrom is how old the waiting samples are at least when the target is asked. If it is late for a moment only, the answer is
	// not needed: the sample would come twice, and a receiver without a window for old samples would count it as refused.
	askOldFrom = 5 * time.Second
	// growsFor is how long a backlog may grow before a window holds several samples of a series.
	growsFor = time.Minute
)

// asking finds out whether the target takes old samples: a sample of the first round of a window is sent again alone after its
// second round.
type asking struct {
	sample point // of the first round; none before it, and after it was sent
	newer  bool  // a newer sample of its series was sent
}

// hold records that the window holds a sample, and reports whether it may be sent.
func (w *window) hold(p *point) bool {
	switch w.lane.cache.held.hold(p) {
	case contradicts:
		w.doubles = append(w.doubles, *p)
		return false
	case fromEntry:
		w.several.Store(true)
	case fromEarlier:
		w.again = true
		w.asking.newer = w.asking.newer || w.asking.sample.exists() && w.asking.sample.series.hash == p.series.hash
		return true // the round after this one holds it
	}
	if !w.asking.sample.exists() && w.round == 0 && p.kind == float {
		w.asking.sample = *p
	}
	return true
}

// buryDoubles rejects the second values of a series at one time: relabelling has merged two series.
func (w *window) buryDoubles() {
	for i := range w.doubles {
		w.shards[0].bury(w.doubles[i:i+1], client.Answer{Text: "it was not sent: another sample of the series has the same time, perhaps because relabelling merged two series"}, queue.Rejected)
	}
	w.doubles = w.doubles[:0]
}

// awaitRound waits until every sample of the window has its outcome. The shards do not wait for more. The error is ctx's.
func (w *window) awaitRound(ctx context.Context) error {
	for waited := false; ; waited = true {
		w.mu.Lock()
		empty, broken := w.progress.Empty(), w.broken
		w.mu.Unlock()
		if broken != nil {
			return broken
		}
		if empty {
			break
		}
		if !waited {
			w.flush()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.room:
		}
	}
	w.lane.cache.held.empty()
	w.several.Store(false)
	w.round++
	return w.askOld(ctx)
}

// askOld asks a target with a backlog whether it takes old samples. The window is empty, so its shards are idle. The error is ctx's.
func (w *window) askOld(ctx context.Context) error {
	p := w.asking.sample
	if w.round < 2 || !p.exists() || !w.lane.isBehind() || w.lane.readAge(time.Now()) < askOldFrom {
		return nil
	}
	if w.asking.sample = (point{}); !w.asking.newer || time.Since(w.lane.askedOld) < askOldEvery {
		return nil
	}
	w.lane.askedOld = time.Now()
	f, _, err := w.shards[0].try(ctx, &parcel{role: asControl, points: []point{p}})
	if f == settled && err == nil {
		w.lane.groups.Store(true)
		w.lane.takesOld.Store(true)
	}
	return ctx.Err()
}

// isBehind reports whether a backlog waits in the log.
func (l *lane) isBehind() bool {
	return backlog(l.read.Load().mark, l.source.Head()) >= l.backlogFrom()
}

// watchBacklog ends the permission to send several samples of a series with the backlog, and gives it if the backlog has grown for a
// minute in which no request failed. A backlog that a search in unknown words causes gets none: the search sends samples again, and of
// several samples of a series the receiver may refuse all but the newest, in the same words as the ones at fault.
func (l *lane) watchBacklog(now time.Time, size uint64, v gate.View) {
	switch {
	case !l.isBehind():
		l.groups.Store(l.behind)
		l.takesOld.Store(false)
		l.grownSince, l.smallest, l.troubles = now, size, v.Troubles
	case size <= l.smallest || l.grownSince.IsZero() || v.Troubles != l.troubles || v.State != gate.Open || l.searches.Load() > 0:
		l.troubles = v.Troubles
		l.grownSince, l.smallest = now, size
	case now.Sub(l.grownSince) >= growsFor:
		l.groups.Store(true)
	}
}
