package remotewrite

import (
	"fmt"
	"log/slog"

	"hwsagent/wal"
	"hwsagent/wal/queue"
)

// settle records the outcomes of samples of one entry and advances the savepoint.
func (w *window) settle(seq uint64, o queue.Outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done(seq, o)
	w.advance()
}

// settleAll records the same outcome for all points: delivered, or dropped for a reason.
func (w *window) settleAll(points []point, o queue.Outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := 0; i < len(points); {
		seq, n := points[i].seq, uint64(0)
		for ; i < len(points) && points[i].seq == seq; i++ {
			if points[i].kind != exemplarPoint {
				n++
			}
		}
		if n > 0 {
			w.done(seq, o.Times(n))
		}
	}
	w.advance()
}

// done records the outcomes of samples of one entry. A wrong outcome is a bug in this package: the window then restarts
// from the savepoint.
func (w *window) done(seq uint64, o queue.Outcome) {
	if err := w.progress.Done(seq, o); err != nil && w.broken == nil {
		w.broken = fmt.Errorf("account for samples: %w", err)
		w.stopReading() // the reader may be waiting at the end of the log
		w.lane.log.Error("The window's account does not add up; starting again from the savepoint", slog.Any("err", err))
	}
}

// advance moves the savepoint past finished entries, with one record for all. The caller holds w.mu, so marks reach the
// source in order.
func (w *window) advance() {
	var last wal.Mark
	var all queue.Outcome
	for w.broken == nil {
		mark, out, ok := w.progress.Pop()
		if !ok {
			break
		}
		last = mark
		all.Add(out)
	}
	if last != (wal.Mark{}) {
		w.lane.source.Advance(last, all)
		w.lane.metrics.Settled(all)
	}
	select {
	case w.room <- struct{}{}:
	default:
	}
}

// reserve records, before a request with samples of entries up to seq, that everything the window has read may be sent. So a
// window costs one record, and not each request. Reserved samples without a final outcome are in doubt in
// the next window, also after a restart.
func (w *window) reserve(seq uint64) error {
	w.highMu.Lock()
	defer w.highMu.Unlock()
	w.mu.Lock()
	_, open := w.progress.Mark(seq) // an entry that has left the window has its outcome; its exemplars may be sent later
	newest := w.progress.Newest()
	mark, _ := w.progress.Mark(newest) // it is there if seq is
	w.mu.Unlock()
	if !open || seq <= w.high {
		return nil
	}
	if err := w.lane.source.Reserve(mark); err != nil {
		return fmt.Errorf("save how far samples may have been sent: %w", err)
	}
	w.high = newest
	return nil
}

// open returns how many samples of the window have no outcome.
func (w *window) open() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.progress.Open()
}
