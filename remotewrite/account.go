package remotewrite

import (
	"fmt"
	"log/slog"

	"hwsagent/wal"
)

// This file accounts for a window's samples: their outcomes, and how far samples may have been sent.

// settle records the outcomes of samples of one entry and advances the savepoint.
func (w *window) settle(seq uint64, o wal.Outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done(seq, o)
	w.advance()
}

// settleAll records the same outcome for all points: delivered, or dropped for a reason.
func (w *window) settleAll(points []point, o wal.Outcome) {
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
			w.done(seq, times(o, n))
		}
	}
	w.advance()
}

// remember records that points are about to be given up: if the window is discarded, their entries are read again.
func (w *window) remember(points []point, why wal.Reason) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range points {
		if mark, ok := w.progress.Mark(p.seq); ok && p.kind != exemplarPoint {
			w.q.givenUp.Add(mark.Commit, keyOf(p), why)
		}
	}
}

// done records the outcomes of samples of one entry. A wrong outcome is a bug in this package: the window then restarts
// from the savepoint.
func (w *window) done(seq uint64, o wal.Outcome) {
	if err := w.progress.Done(seq, o); err != nil && w.broken == nil {
		w.broken = fmt.Errorf("account for samples: %w", err)
		w.stopReading() // the reader may be waiting at the end of the log
		w.q.log.Error("The window's account does not add up; starting again from the savepoint", slog.Any("err", err))
	}
}

// advance moves the savepoint past finished entries. The caller holds w.mu, so marks reach the source in order.
func (w *window) advance() {
	if w.broken == nil {
		for {
			mark, out, ok := w.progress.Pop()
			if !ok {
				break
			}
			w.q.source.Advance(mark, out)
			w.q.givenUp.Forget(mark.Commit)
			w.q.metrics.Settled(out)
		}
	}
	select {
	case w.room <- struct{}{}:
	default:
	}
}

// reserve durably records that entries up to seq may have been sent. It reserves all entries read so far, so the queue
// waits for the disk once per window, not once per batch.
func (w *window) reserve(seq uint64) error {
	w.mu.Lock()
	ok := seq <= w.reserved
	w.mu.Unlock()
	if !ok {
		if err := w.reserveMore(seq); err != nil {
			return err
		}
	}
	return nil
}

// mayHave records that samples of entries up to seq may be stored.
func (w *window) mayHave(seq uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = max(w.sent, seq)
}

func (w *window) reserveMore(seq uint64) error {
	w.reserveMu.Lock()
	defer w.reserveMu.Unlock()
	w.mu.Lock()
	newest := w.progress.Newest()
	mark, ok := w.progress.Mark(newest)
	// An entry that has left the window has its outcome; its exemplars may be sent later.
	_, within := w.progress.Mark(seq)
	done := seq <= w.reserved || !within
	w.mu.Unlock()
	if done {
		return nil
	}
	if !ok {
		return fmt.Errorf("reserve up to entry %d: not in the window", newest)
	}
	if err := w.q.source.Reserve(mark); err != nil {
		return fmt.Errorf("save how far samples may have been sent: %w", err)
	}
	w.mu.Lock()
	w.reserved = newest
	w.mu.Unlock()
	return nil
}

// sentMark returns the end of the newest entry of which a sample may be stored, if the entry is still in the window.
func (w *window) sentMark() (wal.Mark, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.progress.Mark(w.sent)
}

// commitOf returns the commit of entry seq, or 0 if the entry has left the window.
func (w *window) commitOf(seq uint64) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	mark, _ := w.progress.Mark(seq)
	return mark.Commit
}

// open returns how many samples of the window have no outcome.
func (w *window) open() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.progress.Open()
}

// times returns o, the outcome of one sample, for n samples.
func times(o wal.Outcome, n uint64) wal.Outcome {
	o.Delivered *= n
	o.Filtered *= n
	for r := range o.Dropped {
		o.Dropped[r] *= n
	}
	return o
}

// one returns the outcome of one sample that was dropped for reason r.
func one(r wal.Reason) (o wal.Outcome) {
	o.Dropped[r] = 1
	return o
}
