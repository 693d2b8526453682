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
		w.q.log.Error("The window's account does not add up; starting again from the savepoint", slog.Any("err", err))
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
		w.q.source.Advance(last, all)
		w.q.metrics.Settled(all)
	}
	select {
	case w.room <- struct{}{}:
	default:
	}
}

// reserve durably records that entries up to seq may have been sent. It reserves all entries read so far, so the queue
// waits for the disk once per window, not once per batch.
func (w *window) reserve(seq uint64) error {
	if _, _, due := w.toReserve(seq); !due {
		return nil
	}
	w.reserveMu.Lock()
	defer w.reserveMu.Unlock()
	newest, mark, due := w.toReserve(seq)
	if !due {
		return nil // another shard has done it
	}
	if err := w.q.source.Reserve(mark); err != nil {
		return fmt.Errorf("save how far samples may have been sent: %w", err)
	}
	w.mu.Lock()
	w.reserved = newest
	w.mu.Unlock()
	return nil
}

// toReserve returns the newest entry and its end, and whether they must be reserved before samples of entry seq are
// sent. An entry that has left the window has its outcome; its exemplars may be sent later.
func (w *window) toReserve(seq uint64) (newest uint64, mark wal.Mark, due bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, within := w.progress.Mark(seq)
	newest = w.progress.Newest()
	mark, _ = w.progress.Mark(newest) // it is there if seq is
	return newest, mark, within && seq > w.reserved
}

// mayHave records that samples of entries up to seq may be stored.
func (w *window) mayHave(seq uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = max(w.sent, seq)
}

// sentMark returns the end of the newest entry of which a sample may be stored, if the entry is still in the window.
func (w *window) sentMark() (wal.Mark, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.progress.Mark(w.sent)
}

// open returns how many samples of the window have no outcome.
func (w *window) open() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.progress.Open()
}
