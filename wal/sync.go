package wal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"hwsagent/wal/internal/disk"
	"hwsagent/wal/internal/segment"
)

// await returns when b is durable or has failed. A caller that finds no fsync running runs one, for all commits written so far;
// the other callers wait for it, and most then find their batch durable.
func (w *writer) await(b *batch) error {
	for b.waits {
		switch {
		case w.syncing:
			w.cond.Wait()
		case w.doubt:
			// b was published: Sync was SyncAlways when b was written, and an interval when a later commit was. b may be delivered, so it
			// is acknowledged; it is as safe as the settings now require.
			return nil
		default:
			w.sync()
		}
	}
	return b.err
}

// sync runs one fsync, of the segment before the active one if there is one, otherwise of the active one. It releases w.mu during the
// fsync.
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
	switch {
	case err != nil:
		w.failedSync(err)
	case w.before != nil && w.before.file == f: // it may have ended during this fsync
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

// syncFile makes f durable, and with newName its directory entry too.
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

// becameDurable records that all commits up to m, which is in the active segment, are
// durable, and publishes them.
func (w *writer) becameDurable(m Mark) {
	if !w.settle(m) {
		return
	}
	if w.index.mark().Commit <= m.Commit {
		w.index.publish(w.header, m)
	}
	w.cond.Broadcast()
}

// settle records that all commits up to m are durable. It returns false if that was known.
func (w *writer) settle(m Mark) bool {
	if m.Commit <= w.durable.Commit {
		return false
	}
	w.durable, w.lost = m, 0
	w.index.settle(m)
	if w.file != nil && m.Segment == w.header.Number && m.SegmentID == w.header.Segment {
		w.kept.settle(m.Offset)
	}
	n := 0
	for ; n < len(w.retained) && w.retained[n].number <= m.Commit; n++ {
		b := w.retained[n]
		b.waits = false
		w.retainedBytes -= b.memory()
		w.release(b)
	}
	rest := copy(w.retained, w.retained[n:])
	clear(w.retained[rest:])
	w.retained = w.retained[:rest]
	return true
}

// tick makes all written commits durable, or retries after an error. A file or directory that
// is not in its place counts as an error.
func (w *writer) tick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.syncing {
		return
	}
	if err := w.missing(); err != nil && !w.doubt {
		w.failed(fmt.Errorf("write commit: %w", err))
		w.doubt = true
		w.failUnpublished()
	}
	switch {
	case w.doubt:
		_ = w.repair() // failed records the error
		return
	case w.err != nil && w.file == nil:
		_ = w.begin(nil) // likewise
	case w.err != nil:
		w.probe()
	}
	w.syncThrough(w.written.Commit)
}

// probe writes zeros behind the last commit, as many as the commit that failed has bytes: if the disk takes them, commits may succeed
// again.
func (w *writer) probe() {
	_, err := w.file.WriteAt(make([]byte, min(max(w.wanted, 1), retainBytes)), w.offset)
	if err = errors.Join(err, w.file.Truncate(w.offset)); err != nil {
		w.failed(fmt.Errorf("write commit: %w", err))
		return
	}
	w.recovered()
}

// missing returns an error if the active segment was unlinked, replaced or truncated, or a directory was moved:
// commits would then be acknowledged, but lost when the process ends.
func (w *writer) missing() error {
	if w.file == nil {
		return nil
	}
	if err := w.inPlace(); err != nil {
		return err
	}
	switch info, err := w.dir.Look(segment.Name(w.header.Number), w.file); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("segment %s was removed", segment.Name(w.header.Number))
	case errors.Is(err, disk.ErrReplaced):
		return fmt.Errorf("segment %s was replaced by another file", segment.Name(w.header.Number))
	case err == nil && info.Size < w.offset:
		return fmt.Errorf("segment %s was truncated to %d of %d bytes", segment.Name(w.header.Number), info.Size, w.offset)
	}
	return nil // also if Look failed for another reason
}

// run ticks once per interval until ctx ends, and syncs each segment when it ends.
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
			case <-ticks: // this tick came during the fsync of a slow disk; skip it to give the disk a pause
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

// shut makes all commits durable and closes the segment. Later commits fail.
func (w *writer) shut() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for w.syncing {
		w.cond.Wait()
	}
	if w.doubt {
		_ = w.repair()
	}
	w.syncThrough(w.written.Commit)
	var err error
	if n := len(w.retained); n > 0 {
		err = fmt.Errorf("make the last %d commits durable: %w", n, w.err)
	}
	w.forgetBefore()
	if w.file == nil {
		return err
	}
	// Remove a segment that holds only its header.
	empty := w.index.mark().SegmentID != w.header.Segment
	w.seal(w.offset)
	if empty {
		err = errors.Join(err, w.dir.Remove(segment.Name(w.header.Number)))
	}
	return err
}
