package remotewrite

import (
	"fmt"
	"log/slog"

	"hwsagent/wal"
)

// The account of a window: outcomes, and how far samples may have been sent.

// settle gives samples of one entry their outcome and moves the savepoint.
func (w *window) settle(seq uint64, o wal.Outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done(seq, o)
	w.advance()
}

// settleAll gives all points the same outcome: delivered, or dropped for the reason.
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

// remember notes that points are about to be given up: should the window be thrown away,
// their entries are read again.
func (w *window) remember(points []point, why wal.Reason) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range points {
		if mark, ok := w.progress.Mark(p.seq); ok && p.kind != exemplarPoint {
			w.q.givenUp.Add(mark.Commit, keyOf(p), why)
		}
	}
}

// done gives samples of one entry their outcome; a wrong outcome is a mistake of this package, after which the
// window starts over from the savepoint.
func (w *window) done(seq uint64, o wal.Outcome) {
	if err := w.progress.Done(seq, o); err != nil && w.broken == nil {
		w.broken = fmt.Errorf("account for samples: %w", err)
		w.stopReading() // the log may have nothing more
		w.q.log.Error("The window's account does not add up; starting again from the savepoint", slog.Any("err", err))
	}
}

// advance moves the savepoint over what is finished. w.mu is held, so that marks
// reach the source in order.
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

// reserve makes durable that entries up to seq may have been sent. It reserves all that
// is read, so that the disk is waited for once a window and not once a batch.
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

// mayHave notes that samples of entries up to seq may be stored.
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
	// What has left the window has its outcome: exemplars may come after that.
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

// sentMark is the end of the newest entry of which anything may be stored, if that is
// still in the window.
func (w *window) sentMark() (wal.Mark, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.progress.Mark(w.sent)
}

// commitOf is the commit that is the entry seq of the window, 0 if that has left it.
func (w *window) commitOf(seq uint64) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	mark, _ := w.progress.Mark(seq)
	return mark.Commit
}

// open is how many samples of the window have no outcome.
func (w *window) open() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.progress.Open()
}

// times is o, which counts one sample, for n samples.
func times(o wal.Outcome, n uint64) wal.Outcome {
	o.Delivered *= n
	o.Filtered *= n
	for r := range o.Dropped {
		o.Dropped[r] *= n
	}
	return o
}

// one is the outcome of one sample dropped for a reason.
func one(r wal.Reason) (o wal.Outcome) {
	o.Dropped[r] = 1
	return o
}
