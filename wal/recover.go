package wal

import (
	"errors"
	"time"

	"hwsagent/wal/internal/segment"
)

// Recovery from errors. A failed commit must neither be delivered nor break the totals of
// later commits. The rules, in the order in which they apply:
//
//   - Readers never read past the published head (index). A commit is published after
//     its write, or under SyncAlways after its fsync.
//   - After a failed write or fsync the file is abandoned: it is truncated to its last
//     published byte if possible, closed, and never written again. Commits that are
//     published but not known to be durable are logged again, with their old numbers and
//     totals, at the beginning of the next segment. Cursors skip numbers that they have
//     seen.
//   - The truncation may fail too. So the header of the next segment records the end of
//     the abandoned one (PrevID, PrevEnd), and the cursors of this process learn it from
//     the index. Bytes beyond that end do not belong to the log, even if they are valid
//     commits.
//   - The number and the file of a segment without published commits are reused. So a full
//     disk collects one empty file, not hundreds.
//   - If the process ends before there is a next segment, the next process cannot know
//     that the commits at the end had failed. It accepts them: they count and are
//     delivered, which at-least-once allows, and their totals are right, because no
//     commit follows them. Nor can it know that an fsync of them had failed, so it
//     writes them again (refresh.go).
//   - The number of a failed commit is not reused, and no total includes its samples.
//   - A new segment that follows an error counts only after its fsync. So a disk that
//     accepts writes but cannot sync them makes no progress, and creates no segments.
//   - A full disk refuses writes but can still sync. So if no new segment can be begun after
//     a failed write, the abandoned file is synced once: its published commits must not
//     wait for space to become durable. That fsync proves nothing if an earlier fsync of the
//     file failed, because the kernel reports a writeback error only once. In that case,
//     and after a failed fsync, the commits must be logged again.

// cut truncates the file of the active segment to its published end, after an error, and
// returns the resulting size.
func (w *writer) cut() (size int64) {
	if head := w.index.mark(); head.Segment == w.header.Number && head.SegmentID == w.header.Segment {
		size = head.Offset
	}
	if err := w.file.Truncate(size); err != nil {
		size = max(w.offset, w.encoder.pages.End())
		w.logger.Warn("Cannot cut a failed commit off its segment; the next segment's header disowns it", "segment", segment.Name(w.header.Number), "err", err)
	}
	return size
}

// recover begins a new segment after an error of the active one. It returns nil if the new
// segment works and holds b (which may be nil), otherwise err.
func (w *writer) recover(err error, b *batch) error {
	w.failed(err)
	if w.file != nil {
		w.seal(w.cut())
	}
	if w.begin(b) == nil {
		return nil
	}
	w.failUnpublished()
	return err
}

// recoverWrite is recover after a failed write to the active segment. If no new segment can be
// begun, it syncs the published commits of the failed segment, after the segment before it.
func (w *writer) recoverWrite(err error, b *batch) error {
	w.failed(err)
	last := endedSegment{file: w.file, newName: w.newName, end: w.index.mark()}
	w.detach(w.cut())
	defer w.close(last.file)
	if w.begin(b) == nil {
		return nil
	}
	w.failUnpublished()
	w.salvage(last)
	return err
}

// salvage syncs the abandoned segment s, after the one before it. It releases w.mu during the
// fsync. An earlier fsync of s must end first, because the next one would not report its error.
func (w *writer) salvage(s endedSegment) {
	before := w.before
	for w.syncing || before != nil && w.before == before {
		if w.syncing {
			w.cond.Wait()
		} else {
			w.sync()
		}
	}
	if before != nil && w.durable.Commit < before.end.Commit {
		return // the commits of both segments are logged again
	}
	if w.unsynced == s.file || s.end.Commit <= w.durable.Commit {
		return
	}
	w.syncing = true
	w.mu.Unlock()
	err := w.syncFile(s.file, s.newName)
	w.mu.Lock()
	w.syncing = false
	w.cond.Broadcast()
	if err != nil {
		w.logger.Error("Cannot sync a segment after a failed write; the commits that a power cut may destroy are logged again as soon as possible", "err", err)
		return
	}
	w.settle(s.end)
}

// panicked keeps the log usable after a panic in the commit of b, since the caller may
// recover from it. It begins a new segment, because the bytes of b and their series
// announcements may or may not be in the old one.
func (w *writer) panicked(b *batch) {
	w.epoch++
	_ = w.recover(errors.New("commit: it panicked"), nil) // failed records the error
	w.rollback(b)
}

// failed records a disk error.
func (w *writer) failed(err error) {
	w.metrics.errors.Inc()
	w.nextTry = time.Now().Add(w.config().interval() / 2)
	if w.err == nil {
		w.errSince = time.Now()
		w.logger.Error("The log cannot be written; trying a new segment until that works", "err", err)
	}
	w.err = err
	w.index.fail(err, w.now())
}

// failUnpublished fails the batches that only the abandoned segment holds and that were
// never published, and wakes their committers.
func (w *writer) failUnpublished() {
	head := w.index.mark()
	kept := w.retained[:0]
	for _, b := range w.retained {
		if b.number <= head.Commit {
			kept = append(kept, b)
			continue
		}
		b.waits, b.err = false, w.err
		w.retainedBytes -= b.memory()
		w.release(b)
	}
	clear(w.retained[len(kept):])
	w.retained = kept
	w.written.Commit, w.written.Total = w.durable.Commit, w.durable.Total
	if n := len(kept); n > 0 {
		w.written.Commit, w.written.Total = kept[n-1].number, kept[n-1].total
	}
	w.cond.Broadcast()
}
