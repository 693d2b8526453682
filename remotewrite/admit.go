package remotewrite

import (
	"context"
	"errors"
	"slices"
	"time"

	"hwsagent/remotewrite/gate"
	"hwsagent/wal"
	"hwsagent/wal/queue"
)

// read moves entries from the log into the shards until ctx ends.
func (w *window) read(ctx context.Context) error {
	held := w.lane.gate.View().State == gate.Held
	for {
		if err := w.waitRoom(ctx); err != nil {
			return err
		}
		if wait := time.Until(w.lane.mayRead); wait > 0 {
			w.flush()
			if err := gate.Sleep(ctx, wait); err != nil {
				return err
			}
		}
		e, err := w.lane.nextEntry(ctx)
		if errors.Is(err, wal.ErrCaughtUp) {
			w.draining.Store(true)
			return nil
		}
		if err != nil {
			return err
		}
		if err := w.admit(ctx, e); err != nil {
			w.lane.unread = e
			return err
		}
		if held && !w.lane.readBefore(w.lane.source.Head()) {
			held = false
			w.flush() // see newShard
		}
	}
}

// readRest moves entries up to the log's present end into the shards, as far as there is room.
func (w *window) readRest(ctx context.Context) error {
	for head := w.lane.source.Head(); w.lane.readBefore(head) && w.hasRoom(); {
		e, err := w.lane.nextEntry(ctx)
		if err != nil {
			return err
		}
		if err := w.admit(ctx, e); err != nil {
			w.lane.unread = e
			return err
		}
	}
	return nil
}

func (w *window) hasRoom() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.broken == nil && !w.progress.Full()
}

// admit hands each sample of the entry to its shard, or settles it at once. An entry with a sample of a series that the window holds
// waits until the window is empty. The error is ctx's; then the entry is not admitted.
func (w *window) admit(ctx context.Context, e *wal.Entry) error {
	l := w.lane
	var now queue.Outcome // outcomes that are known at once
	lim := l.limits()

	w.mu.Lock()
	seq := w.progress.Newest() + 1
	w.mu.Unlock()
	w.commit, w.unsure, w.again, w.doubles = e.End.Commit, e.End.Commit <= l.high.Commit, false, w.doubles[:0]
	l.cache.held.begin()
	l.cache.late = e.End.Commit > l.startedAt.Commit
	for i := range w.perShard {
		w.perShard[i] = w.perShard[i][:0]
	}
	for _, s := range e.Ended {
		w.again = l.cache.end(s) || w.again // if the series comes back, the window does not know that it holds a sample of it
	}
	for i := range e.Samples {
		s := &e.Samples[i]
		if to := w.accept(s.Series, s.T, lim, &now); to != nil {
			w.put(point{series: to, seq: seq, st: s.ST, t: s.T, v: s.V})
		}
	}
	w.admitHistograms(e, seq, lim, &now)
	if w.again && !l.groups.Load() {
		if err := w.awaitRound(ctx); err != nil {
			l.cache.held.undo(w.perShard)
			return err
		}
		for i, ps := range w.perShard {
			w.perShard[i] = slices.DeleteFunc(ps, func(p point) bool { return !w.hold(&p) })
		}
	}
	w.admitExemplars(e, seq)
	w.mu.Lock()
	w.progress.Begin(e.End, e.Count(), e.Missing)
	w.mu.Unlock()
	w.buryDoubles()
	w.settle(seq, now)
	for i, ps := range w.perShard {
		w.shards[i].push(ps)
	}
	l.readUpTo(e) // only now: once an entry counts as read, its samples must be in the shards
	return nil
}

// admitHistograms does the same for the entry's histograms; out gets the outcomes that are known at once.
func (w *window) admitHistograms(e *wal.Entry, seq uint64, lim limits, out *queue.Outcome) {
	for i := range e.Histograms {
		h := &e.Histograms[i]
		if sent := w.lane.cache.at(h.Series, w.commit); sent != nil && !sent.dropped() && !w.lane.proto.Newer() && !w.lane.cfg.CarriesHistogram(h.H, h.FH) {
			out.Dropped[queue.Unsupported]++
			continue
		}
		to := w.accept(h.Series, h.T, lim, out)
		if to == nil {
			continue
		}
		// The log owns the entry's histograms: copy those that are kept.
		p := point{series: to, seq: seq, st: h.ST, t: h.T, kind: intHistogram, aux: &pointAux{}}
		if h.H != nil {
			p.aux.h = h.H.Copy()
		} else {
			p.kind, p.aux.fh = floatHistogram, h.FH.Copy()
		}
		w.put(p)
	}
}

// admitExemplars hands the entry's exemplars to the shards of their samples.
func (w *window) admitExemplars(e *wal.Entry, seq uint64) {
	if w.lane.cfg.SendExemplars {
		for i := range e.Exemplars {
			x := &e.Exemplars[i]
			if to := w.lane.cache.at(x.Series, w.commit); to != nil && !to.dropped() {
				w.put(point{series: to, seq: seq, t: x.T, v: x.V, kind: exemplarPoint, aux: &pointAux{labels: x.Labels}})
			}
		}
	}
	if len(e.Exemplars) > 0 {
		for _, ps := range w.perShard {
			placeExemplars(ps)
		}
	}
}

// accept returns the series as it is sent; or it counts in out why the sample is not sent, and returns nil.
func (w *window) accept(s *wal.Series, t int64, lim limits, out *queue.Outcome) *series {
	to := w.lane.cache.at(s, w.commit)
	switch {
	case to == nil:
		out.Dropped[queue.NoTenant]++
		return nil
	case to.dropped():
		out.Filtered++
		return nil
	case t < lim.oldest:
		out.Dropped[queue.TooOld]++
		return nil
	case t > lim.newest:
		out.Dropped[queue.Future]++
		return nil
	}
	return to
}

func (w *window) put(p point) {
	p.doubt = w.unsure
	if p.kind != exemplarPoint {
		if !w.hold(&p) {
			return
		}
	}
	i := p.series.hash % uint64(len(w.shards))
	w.perShard[i] = append(w.perShard[i], p)
}

// waitRoom waits until the window has room for another entry. Meanwhile the shards do not wait for full batches: no
// samples could come to fill them.
func (w *window) waitRoom(ctx context.Context) error {
	for waited := false; ; waited = true {
		w.mu.Lock()
		w.progress.SetLimits(w.bounds())
		full, broken := w.progress.Full(), w.broken
		w.mu.Unlock()
		if broken != nil {
			return broken
		}
		if !full {
			return ctx.Err()
		}
		if !waited {
			w.lane.metrics.Waited()
			w.flush()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.room:
		}
	}
}

// bounds returns the window's limits in samples: open for samples without an outcome, span for all samples from its
// first entry to its last.
func (w *window) bounds() (open, span int) {
	shards := len(w.shards)
	open = w.lane.cfg.Queue.Capacity
	if shards > 1 {
		each := min(open, max(open/2, inHand*w.lane.batchLimit()))
		open = min(each*shards, max(open, inAll))
	}
	return open, aheadOf * open
}
