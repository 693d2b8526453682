package wal

import (
	"errors"
	"fmt"
	"os"
	"time"

	"hwsagent/wal/internal/disk"
	"hwsagent/wal/internal/segment"
)

// Recovery from errors. A failed commit must neither be delivered nor break the totals of later commits. The rules:
//
//   - Readers never read past the published head (index). A commit is published after its write, or under SyncAlways after its
//     fsync. What is published is never truncated and never fails.
//   - The number of a failed commit is not used again, and no total includes its samples. Readers skip these numbers, because
//     after a failed fsync the file may have its older content, with the failed commit.
//   - After a failed write the file is truncated to the end of the commit before. The next commit is written there, after half an
//     interval at the earliest. The fsync of earlier commits goes on, so they do not wait for space.
//   - After a failed fsync it is unknown what the disk has. Commits whose callers still wait fail, and are cut off. All others are
//     written again at their places, from memory (keptBytes), and synced. This is tried at once, and then each interval without end;
//     until it has worked, commits fail. A reader that finds damage behind the durable end waits for that (errNotDurable).
//   - If the file is no longer there, or after a minute of failures, the commits that are not durable are logged again in a new
//     segment, with their numbers (move). The old file is then cut at the durable end.
//   - If the process ends before that, the next one cannot know that commits at the end had failed. It accepts them: they count and are
//     delivered, and their totals are right, because no commit follows them. Nor can it know that an fsync of them had failed, so it
//     writes them again (refresh.go).

// movePatience is how long an fsync must have failed before the commits that are not durable go into another file.
const movePatience = time.Minute

// failed records a disk error.
func (w *writer) failed(err error) {
	w.metrics.errors.Inc()
	w.nextTry = time.Now().Add(w.config().interval() / 2)
	if w.err == nil {
		w.errSince = time.Now()
		w.logger.Error("The log cannot be written; trying again until that works", "err", err)
	}
	w.err = err
	w.index.fail(err, w.now())
}

// recovered records that the disk works again.
func (w *writer) recovered() {
	if w.err == nil {
		return
	}
	w.logger.Info("The log is written again", "segment", segment.Name(w.next), "after", time.Since(w.errSince).Round(time.Millisecond))
	w.err = nil
	w.index.heal()
}

// failedWrite records that the write of a commit failed, and cuts it off. If the disk refuses that, the next commit overwrites it.
func (w *writer) failedWrite(err error) error {
	w.failed(err)
	w.index.refuse(w.number)
	w.wanted = len(w.encoder.pages.Buf)
	w.unannounce()
	w.cutFailed()
	return err
}

// cutFailed cuts what is behind the last commit off the active segment.
func (w *writer) cutFailed() {
	if w.file == nil {
		return
	}
	if err := w.file.Truncate(w.offset); err != nil {
		w.logger.Warn("Cannot cut a failed commit off its segment", "segment", segment.Name(w.header.Number), "err", err)
	}
}

// failedSync fails the commits that wait for their fsync, and writes all others again.
func (w *writer) failedSync(err error) {
	w.failed(err)
	w.doubt = true
	w.failUnpublished()
	_ = w.repair() // failed records the error
}

// failUnpublished fails the commits that were not published, and cuts them off.
func (w *writer) failUnpublished() {
	head := w.index.mark()
	kept := w.retained[:0]
	for _, b := range w.retained {
		if b.number <= head.Commit {
			kept = append(kept, b)
			continue
		}
		w.index.refuse(b.number)
		b.waits, b.err = false, w.err
		w.retainedBytes -= b.memory()
		w.release(b)
	}
	clear(w.retained[len(kept):])
	w.retained = kept
	if w.written = w.durable; head.Commit > w.durable.Commit {
		w.written = head
	}
	if w.file != nil {
		w.offset = w.start
		if head.Segment == w.header.Number && head.SegmentID == w.header.Segment {
			w.offset = head.Offset
		}
		w.kept.cut(w.offset)
		w.epoch++ // what the failed commits announced is not in the file
	}
	w.cond.Broadcast()
}

// repair makes the commits durable that are in doubt after a failed fsync: first in their place, then in another file.
func (w *writer) repair() error {
	err := w.missing()
	there := err == nil
	if there {
		if err = w.writeAgain(); err == nil {
			err = w.syncAgain()
		}
		if err != nil {
			_ = w.writeAgain() // after a kill, a start must find what the failed fsync has dropped; the next try reports an error
		}
	}
	if err != nil && (!there || time.Since(w.errSince) >= movePatience) {
		if moved := w.move(); moved == nil {
			err = nil
		} else if !there {
			err = errors.Join(err, moved)
		}
	}
	if err != nil {
		w.failed(err)
		return err
	}
	w.doubt = false
	w.recovered()
	return nil
}

// writeAgain writes the bytes that are not durable again at their places.
func (w *writer) writeAgain() (err error) {
	if w.before != nil {
		err = w.before.kept.rewrite(w.before.file)
	}
	if w.file != nil {
		err = errors.Join(err, w.kept.rewrite(w.file))
	}
	if err != nil {
		return fmt.Errorf("write commits again: %w", err)
	}
	return nil
}

// syncAgain makes durable what writeAgain has written.
func (w *writer) syncAgain() error {
	if b := w.before; b != nil {
		if err := w.syncFile(b.file, b.newName); err != nil {
			return err
		}
		w.settle(b.end)
		w.forgetBefore()
	}
	if w.file == nil {
		return nil
	}
	if err := w.syncFile(w.file, w.newName); err != nil {
		return err
	}
	w.newName = false
	w.becameDurable(w.written)
	return nil
}

// unfinished stands in a segment instead of its own first bytes until move has made the rest durable.
const unfinished = "hwsagent: this segment was not written to its end\n"

// move logs the commits that are not durable again, in a new segment. That counts only once all of it is durable: until then its first
// bytes are those of unfinished, and a start removes it.
func (w *writer) move() error {
	if err := w.inPlace(); err != nil {
		return err
	}
	head := w.index.mark()
	number := w.next
	if w.file != nil && head.Segment == w.header.Number && head.SegmentID == w.header.Segment {
		number++ // else the active segment has nothing that counts
	}
	h := w.newHeader(number, w.durable)
	h.PrevID, h.PrevEnd = w.index.durableEnd(w.durable)
	w.epoch++
	e := &w.encoder
	e.reset(h.Number, 0)
	e.header(h)
	start := e.pages.End()
	for _, b := range w.retained {
		if err := e.commit(b, w.series, w.epoch); err != nil { // not reached: b was written before, and metadata that has grown since is left out
			return err
		}
	}
	f, err := w.writeWhole(h.Number)
	if err != nil {
		return err
	}
	w.index.cutAt(w.durable, time.Now())
	w.forgetBefore()
	if w.file != nil {
		w.close(w.file)
	}
	w.take(f, h, start)
	w.newName, w.next = false, h.Number
	end := w.durable
	if n := len(w.retained); n > 0 {
		end = w.markOf(w.retained[n-1])
		w.index.publish(h, end)
	}
	w.written = end
	w.settle(end)
	w.cond.Broadcast()
	w.logger.Warn("The log goes on in another segment", "segment", segment.Name(h.Number))
	return nil
}

// writeWhole writes the encoded bytes durably to the segment of that number: first all but those that unfinished stands for.
func (w *writer) writeWhole(number int) (disk.File, error) {
	b := w.encoder.pages.Buf
	first := string(b[:len(unfinished)]) // a header is longer
	f, err := w.dir.Open(segment.Name(number), os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return nil, fmt.Errorf("create segment: %w", err)
	}
	copy(b, unfinished)
	err = w.write(f, 0)
	copy(b, first)
	if err == nil {
		err = w.syncFile(f, true)
	}
	if err == nil {
		_, err = f.WriteAt(b[:len(unfinished)], 0)
	}
	if err == nil {
		err = w.syncFile(f, false)
	}
	if err != nil {
		return nil, errors.Join(err, f.Truncate(0), f.Close())
	}
	w.metrics.segmentsCreated.Inc()
	return f, nil
}

// panicked keeps the log usable after a panic in the commit of b, since the caller may recover from it. The bytes of b and their
// series announcements may or may not be in the file.
func (w *writer) panicked(b *batch) {
	w.metrics.errors.Inc()
	w.logger.Error("A commit panicked; it is cut off the log")
	w.epoch++
	w.cutFailed()
	w.rollback(b)
}
