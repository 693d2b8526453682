package wal

import (
	"time"

	"hwsagent/wal/internal/disk"
)

// How a segment ends. A segment that is full is not synced before the next one begins, since
// every commit would wait for that fsync, those of other inputs included. The writer keeps it
// as writer.before, begins the next segment at once, and wakes run, which syncs it without
// holding writer.mu. The rules:
//
//   - The order of durability is the order of segments: an fsync of the active segment begins
//     only when there is no writer.before. So at most two files wait for an fsync, and a
//     segment that must end while the one before it is not durable waits for that.
//   - Only a segment whose every commit is published ends this way. Commits that wait for
//     their fsync (`sync: always`) would gain nothing by it, and a failure would have to take
//     back two segments. They are made durable first.
//   - The next segment's header has the last commit before it (Header.Commit), which is more
//     than was durable when it began (Header.DurableCommit). A start counts what lies between
//     the two, and is not on the disk, as lost to a power cut, since no header vouches for it.
//   - An error while two files wait, of either file, is handled as one of a single file: all
//     batches that are not durable, of both, are logged again, in their order and under their
//     numbers, at the beginning of the next segment. The header of that names a commit before
//     those of both segments, and readers take the smallest such number of all later headers.

// endedSegment is a segment that has ended and is not durable yet.
type endedSegment struct {
	file    disk.File
	newName bool // as writer.newName

	// end is the mark of its last commit.
	//
	// Invariant: end is published, and writer.durable is before it.
	end Mark
}

// mayRoll reports whether the active segment may end now.
func (w *writer) mayRoll() bool {
	return w.before == nil && w.index.mark().Commit == w.written.Commit
}

// roll ends the active segment; mayRoll must have said that it may. It does not wait for the
// disk: what of the segment is not durable is synced by run.
func (w *writer) roll() {
	if w.durable.Commit < w.written.Commit {
		w.before = &endedSegment{file: w.file, newName: w.newName, end: w.written}
		w.detach(w.offset)
		select {
		case w.rolled <- struct{}{}:
		default: // run is woken already
		}
		return
	}
	w.seal(w.offset)
}

// end ends the active segment, or waits for some of what keeps it from ending. The caller
// looks again: others may have ended it meanwhile.
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
	if w.before != nil && !w.closed {
		w.sync()
	}
}

// syncThrough makes durable everything up to the commit of that number, as far as the disk
// lets it.
func (w *writer) syncThrough(number uint64) {
	for w.durable.Commit < min(number, w.written.Commit) && (w.before != nil || w.file != nil) {
		if w.syncing {
			w.cond.Wait()
		} else {
			w.sync()
		}
	}
}

// forgetBefore gives the segment before the active one up, of which all that is not durable
// has been logged again, or will be.
func (w *writer) forgetBefore() {
	if w.before != nil {
		w.close(w.before.file)
		w.before = nil
	}
}

// seal closes the active segment, whose file has size bytes. If nothing of it was
// published, its number is free.
func (w *writer) seal(size int64) {
	f := w.file
	w.detach(size)
	w.close(f)
}

// detach makes the active segment, whose file has size bytes, an inactive one. The file
// stays open.
func (w *writer) detach(size int64) {
	w.file, w.ends = nil, false
	if head := w.index.mark(); head.Segment == w.header.Number && head.SegmentID == w.header.Segment {
		w.next, w.prevID, w.prevEnd = w.header.Number+1, w.header.Segment, head.Offset
		w.index.seal(size, time.Now())
	}
}

// rollNow ends the active segment, if there is anything in it, so that the budget can remove
// it. If it may not end now, the next time will do.
func (w *writer) rollNow() {
	if !w.mu.TryLock() {
		return // busy, perhaps with a disk that hangs
	}
	defer w.mu.Unlock()
	if !w.closed && w.file != nil && w.offset > w.start && w.mayRoll() {
		w.roll()
	}
}

func (w *writer) close(f disk.File) {
	if err := f.Close(); err != nil {
		w.logger.Warn("Cannot close segment", "err", err)
	}
}
