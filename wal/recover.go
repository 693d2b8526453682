package wal

import (
	"errors"
	"time"

	"hwsagent/wal/internal/segment"
)

// What a failure leaves behind. A failed commit must neither be delivered nor break
// the totals of what follows. The rules, in the order in which they are needed:
//
//   - Nothing is readable beyond the published head (index). A commit is published
//     after its write, or under SyncAlways after its fsync.
//   - After any error of write or fsync the file is abandoned: it is cut to its last
//     published byte as well as can be, closed, and never written again. What was
//     published but is not known to be durable is logged again, under the numbers and
//     totals that it had, at the beginning of the next segment: cursors skip numbers
//     that they have seen.
//   - The cutting may fail too. So the header of the next segment says where this one
//     ends (PrevID, PrevEnd), and this process' cursors learn it from the index. The
//     bytes beyond are in nobody's log, though they may read as commits.
//   - A segment of which nothing was published leaves no trace: its number is used
//     again, its file overwritten. A full disk collects one empty file, not hundreds.
//   - If the process ends before there is a next segment, the log that is opened
//     afterwards cannot know that the commits at the end had failed. It takes them
//     in: they count and are delivered, which at-least-once allows, and the totals
//     that they carry are right, because nothing follows them. Nor can it know that an fsync
//     of them had failed, so it writes them once more (refresh.go).
//   - A failed commit's number is not given out again, its samples are in no total.
//   - A new segment that follows an error counts only after its fsync. So a disk that
//     takes writes and refuses to keep them makes no progress, and no segments.
//   - A full disk refuses writes and still syncs what it has. So after a failed write, if
//     no new segment can be begun, the abandoned file is synced once: what was published
//     of it must not wait for space to become durable. That fsync proves nothing if an
//     earlier one of the same file failed, since the kernel reports an error of writing
//     back only once: then, and after a failed fsync, only logging again helps.

// cut shortens the active segment's file to what was published of it, after an error, and
// returns how long the file is then.
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

// recover goes on in a new segment after an error of the active one. The error is
// nil if that worked, for b (which may be nil) too.
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

// recoverWrite does so after a write of the active segment failed. If no new segment can be
// begun, it syncs what was published of the segment, after the one before.
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

// salvage syncs the abandoned segment s, after the one before it, without holding w.mu
// meanwhile. An fsync of s that began earlier must end first: an error of that would be missing
// from the next fsync.
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
		return // both are logged again
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
		w.logger.Error("Cannot sync a segment after a failed write; what a power cut may take is logged again as soon as that is possible", "err", err)
		return
	}
	w.settle(s.end)
}

// errPanicked is why a segment is given up amid a panic.
var errPanicked = errors.New("commit: it panicked")

// panicked makes the log fit for further commits while a panic that ended the commit of b
// goes on to the caller, who may contain it. Of b's bytes, and of the series that they
// announce, nothing is known: they must not be counted on, so a new segment is begun.
func (w *writer) panicked(b *batch) {
	w.epoch++
	_ = w.recover(errPanicked, nil) // noted
	w.rollback(b)
}

// failed notes an error of the disk.
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

// failUnpublished fails the batches that are in the abandoned segment only and that
// nobody may have read. Those who wait for them learn it.
func (w *writer) failUnpublished() {
	head := w.index.mark()
	kept := w.retained[:0]
	for _, b := range w.retained {
		if b.number <= head.Commit {
			kept = append(kept, b)
			continue
		}
		b.state, b.err = batchFailed, w.err
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
