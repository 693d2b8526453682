package wal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"hwsagent/wal/internal/disk"
	"hwsagent/wal/internal/segment"
)

// await returns when b is durable or has failed. Whoever finds no fsync running
// runs one, for all that is written by then; the others wait for it, and most find
// their batch done.
func (w *writer) await(b *batch) error {
	for b.state == batchWritten {
		switch {
		case w.syncing:
			w.cond.Wait()
		case w.file == nil && b.number <= w.index.mark().Commit:
			// A commit behind it was published: sync was always when this one was written, and
			// an interval when that one was. It may be delivered, so it is acknowledged, as safe
			// as the settings ask for now.
			return nil
		case w.file == nil:
			return fmt.Errorf("sync commit: %w", w.err)
		default:
			w.sync()
		}
	}
	return b.err
}

// sync runs one fsync, without holding w.mu meanwhile: of the segment before the active one
// if there is one, otherwise of the active one.
func (w *writer) sync() {
	f, target, newName := w.file, w.written, w.newName
	if w.before != nil {
		f, target, newName = w.before.file, w.before.end, w.before.newName
	}
	w.syncing = true
	w.mu.Unlock()
	err := w.syncFile(f, newName)
	w.mu.Lock()
	w.syncing = false
	w.cond.Broadcast()
	if err != nil {
		w.unsynced = f
	}
	ended := w.before != nil && w.before.file == f // perhaps since this fsync began
	switch {
	case !ended && w.file != f:
		// A write failed meanwhile, and what was not durable is in another segment: this
		// fsync says nothing about that, nor about a file cut short under it.
	case err != nil:
		if ended {
			w.forgetBefore()
		}
		_ = w.recover(err, nil) // noted; the batches know
	case ended:
		w.before.newName = w.before.newName && !newName
		w.settle(target)
		if target.Commit == w.before.end.Commit {
			w.forgetBefore()
		}
	default:
		w.newName = w.newName && !newName
		w.becameDurable(target)
	}
}

// syncFile makes f durable, its directory entry included if newName says so.
func (w *writer) syncFile(f disk.File, newName bool) error {
	began := time.Now()
	err := f.Sync()
	if err == nil && newName {
		err = w.dir.Sync()
	}
	w.metrics.fsync.Observe(time.Since(began).Seconds())
	if err != nil {
		return fmt.Errorf("sync segment: %w", err)
	}
	return nil
}

// becameDurable notes that everything up to m, which is in the active segment, is
// durable, and publishes it.
func (w *writer) becameDurable(m Mark) {
	if !w.settle(m) {
		return
	}
	if w.index.mark().Commit <= m.Commit {
		w.index.publish(w.header, m)
	}
	w.cond.Broadcast()
}

// settle notes that everything up to m is durable. It is false if that was known before.
func (w *writer) settle(m Mark) bool {
	if m.Commit <= w.durable.Commit {
		return false
	}
	w.durable, w.lost = m, 0
	w.index.settle(m)
	n := 0
	for ; n < len(w.retained) && w.retained[n].number <= m.Commit; n++ {
		b := w.retained[n]
		b.state = batchDurable
		w.retainedBytes -= b.memory()
		w.release(b)
	}
	rest := copy(w.retained, w.retained[n:])
	clear(w.retained[rest:])
	w.retained = w.retained[:rest]
	return true
}

// tick makes durable what is not, and tries to get over an error. A file or directory
// that is not in its place is one.
func (w *writer) tick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.syncing {
		return
	}
	if w.file != nil {
		if err := w.missing(); err != nil {
			_ = w.recover(fmt.Errorf("write commit: %w", err), nil) // noted
			return
		}
	}
	if w.err != nil && w.file == nil {
		_ = w.begin(nil) // noted
		return
	}
	w.syncThrough(w.written.Commit)
}

// missing says why what is written to the active segment now would be acknowledged, and
// gone with the process: somebody has unlinked it, or moved a directory.
func (w *writer) missing() error {
	if err := w.inPlace(); err != nil {
		return err
	}
	f, err := w.dir.Open(segment.Name(w.header.Number), os.O_RDONLY)
	if err == nil {
		w.close(f)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("segment %s was removed", segment.Name(w.header.Number))
	}
	return nil
}

// run ticks once per interval until ctx ends, and syncs each segment that ends.
func (w *writer) run(ctx context.Context, every func(time.Duration) (<-chan time.Time, func())) {
	interval := w.config().interval()
	ticks, stop := every(interval)
	defer func() { stop() }()
	for {
		due := false
		select {
		case <-ctx.Done():
			return
		case <-w.rolled:
		case <-ticks:
			due = true
		}
		w.syncBefore()
		if due {
			w.tick()
			select {
			case <-ticks: // while a slow disk was synced; it gets a pause
			default:
			}
			if now := w.config().interval(); now != interval {
				stop()
				interval = now
				ticks, stop = every(interval)
			}
		}
	}
}

// shut makes everything durable and closes the segment. Commits fail from now on.
func (w *writer) shut() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for w.syncing {
		w.cond.Wait()
	}
	if w.file == nil && w.before == nil && len(w.retained) > 0 {
		_ = w.begin(nil)
	}
	w.syncThrough(w.written.Commit)
	var err error
	if n := len(w.retained); n > 0 {
		err = fmt.Errorf("make the last %d commits durable: %w", n, w.err)
	}
	if w.file == nil {
		return err
	}
	// A segment that holds nothing but its header is not worth a file.
	empty := w.index.mark().SegmentID != w.header.Segment
	w.seal(w.offset)
	if empty {
		err = errors.Join(err, w.dir.Remove(segment.Name(w.header.Number)))
	}
	return err
}
