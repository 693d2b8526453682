package wal

import (
	"time"

	"hwsagent/wal/internal/disk"
)

// How a segment ends. The next segment begins before a full segment is synced, because
// otherwise the commits of all inputs would wait for that fsync. The writer keeps the full
// segment as writer.before, begins the next one at once, and wakes run, which syncs the full
// one without holding writer.mu. The rules:
//
//   - Segments become durable in order: an fsync of the active segment begins only when there
//     is no writer.before. So at most two files wait for an fsync, and a segment that must end
//     while the previous one is not durable waits for the previous one.
//   - A segment ends this way only if all its commits are published. Commits that wait for
//     their fsync (`sync: always`) would gain nothing, and a failure would have to undo two
//     segments. They are made durable first.
//   - The header of the next segment names the last commit before it (Header.Commit), which is
//     later than the last durable one when it began (Header.DurableCommit). A start counts the
//     commits between the two that are not on the disk as lost to a power cut, because no
//     header calls them durable.
//   - After an error of either file while two wait, the bytes of both are written again, in order.

// endedSegment is a segment that has ended and is not durable yet.
type endedSegment struct {
	file    disk.File
	newName bool      // as writer.newName
	kept    keptBytes // as writer.kept

	// end is the mark of its last commit.
	//
	// Invariant: end is published, and writer.durable is before it.
	end Mark
}

// mayRoll reports whether the active segment may end now.
func (w *writer) mayRoll() bool {
	return w.before == nil && w.index.mark().Commit == w.written.Commit
}

// roll ends the active segment; mayRoll must be true. It does not wait for the disk: run syncs
// the segment if it is not durable.
func (w *writer) roll() {
	if w.durable.Commit < w.written.Commit {
		w.before = &endedSegment{file: w.file, newName: w.newName, kept: w.kept, end: w.written}
		w.kept, w.spareKept = keptBytes{b: w.spareKept}, nil
		w.detach(w.offset)
		select {
		case w.rolled <- struct{}{}:
		default: // run has been woken already
		}
		return
	}
	w.seal(w.offset)
}

// end ends the active segment, or waits for one fsync that may allow it to end. The caller must
// check again, because another goroutine may have ended it meanwhile.
func (w *writer) end() {
	switch {
	case w.mayRoll():
		w.roll()
	case w.syncing:
		w.cond.Wait()
	default:
		w.sync()
	}
}

// syncBefore makes the segment before the active one durable, if there is one.
func (w *writer) syncBefore() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.before != nil && w.syncing {
		w.cond.Wait()
	}
	if w.before != nil && !w.closed && !w.doubt {
		w.sync()
	}
}

// syncThrough makes all commits up to that number durable, as far as the disk allows.
func (w *writer) syncThrough(number uint64) {
	for !w.doubt && w.durable.Commit < min(number, w.written.Commit) && (w.before != nil || w.file != nil) {
		if w.syncing {
			w.cond.Wait()
		} else {
			w.sync()
		}
	}
}

// forgetBefore closes the segment before the active one. It is durable by then, or its commits are in another one, or the log is
// being closed.
func (w *writer) forgetBefore() {
	if w.before != nil {
		w.close(w.before.file)
		w.before, w.spareKept = nil, w.before.kept.b[:0]
	}
}

// seal closes the active segment, whose file has size bytes. Without published commits its
// number is reused.
func (w *writer) seal(size int64) {
	f := w.file
	w.detach(size)
	w.close(f)
}

// detach makes the active segment, whose file has size bytes, inactive. The file stays open.
func (w *writer) detach(size int64) {
	w.file, w.ends = nil, false
	if head := w.index.mark(); head.Segment == w.header.Number && head.SegmentID == w.header.Segment {
		w.next, w.prevID, w.prevEnd = w.header.Number+1, w.header.Segment, head.Offset
		w.index.seal(size, time.Now())
	}
}

// rollNow ends the active segment, if it has commits, so that the budget can remove it. If it
// may not end now, the next call tries again.
func (w *writer) rollNow() {
	if !w.mu.TryLock() {
		return // the writer is busy, perhaps with a disk that hangs
	}
	defer w.mu.Unlock()
	if !w.closed && !w.doubt && w.file != nil && w.offset > w.start && w.mayRoll() {
		w.roll()
	}
}

func (w *writer) close(f disk.File) {
	if err := f.Close(); err != nil {
		w.logger.Warn("Cannot close segment", "err", err)
	}
}
