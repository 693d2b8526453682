package wal

import (
	"context"
	"slices"
	"sync"
	"time"

	"hwsagent/wal/internal/segment"
)

// index holds the readable part of the log: the kept segments and the head. Cursors,
// status and writer share it, and its mutex is never held during I/O.
type index struct {
	mu     sync.Mutex // guards everything below
	head   Mark
	safe   Mark           // the last durable commit
	proven *Mark          // the same while refresh has not succeeded: later ones up to safe may not be durable; else nil
	list   []segment.Info // by number; may have gaps
	floor  int            // while list is empty: number of the first segment to come
	wake   chan struct{}
	closed bool

	written int64 // bytes published since the start

	// refused are the failed commits after safe. Their bytes were cut off or overwritten, but after a failed fsync the disk may have
	// the older content of the file.
	refused []numbers

	fault error     // why commits fail at present; nil if they succeed
	since time.Time // of the first failure in a row
}

// numbers are commit numbers, from one up to before another.
type numbers struct{ from, before uint64 }

// refuse records that the commit of that number failed.
func (ix *index) refuse(number uint64) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if n := len(ix.refused); n > 0 && ix.refused[n-1].before == number {
		ix.refused[n-1].before++
		return
	}
	ix.refused = append(ix.refused, numbers{number, number + 1})
}

// isRefused implements [tail.isRefused].
func (ix *index) isRefused(number uint64) bool {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return slices.ContainsFunc(ix.refused, func(r numbers) bool { return r.from <= number && number < r.before })
}

// mark returns the head.
func (ix *index) mark() Mark {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.head
}

// settle records that all commits up to m are durable.
func (ix *index) settle(m Mark) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.safe = m
	ix.refused = slices.DeleteFunc(ix.refused, func(r numbers) bool { return r.before <= m.Commit })
}

// durable returns the mark of the last durable commit.
func (ix *index) durable() Mark {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.proven != nil {
		return *ix.proven
	}
	return ix.safe
}

// prove sets the last commit that is durable while refresh has not succeeded, or nil when it has.
func (ix *index) prove(m *Mark) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.proven = m
}

// unproven returns what prove has set.
func (ix *index) unproven() *Mark {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.proven
}

// publish moves the head to m, the end of a commit in the segment of h.
func (ix *index) publish(h segment.Header, m Mark) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if n := len(ix.list); n == 0 || ix.list[n-1].Number != m.Segment {
		ix.list = append(ix.list, segment.Info{Number: m.Segment, Header: h})
	}
	last := &ix.list[len(ix.list)-1]
	ix.written += m.Offset - last.Size
	last.End, last.Size = m.Offset, m.Offset
	ix.head = m
	if ix.wake != nil {
		close(ix.wake)
		ix.wake = nil
	}
}

// seal ends the newest segment, whose file has size bytes.
func (ix *index) seal(size int64, now time.Time) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	last := &ix.list[len(ix.list)-1]
	last.Size, last.Sealed = size, now
}

// shrink records that the file of a segment was truncated to that size.
func (ix *index) shrink(number int, size int64) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for i := range ix.list {
		if ix.list[i].Number == number {
			ix.list[i].Size = size
		}
	}
}

// durableEnd returns the ID of the newest segment, and where it ends if only commits up to the mark durable count.
func (ix *index) durableEnd(durable Mark) (ID, int64) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if len(ix.list) == 0 {
		return ID{}, 0
	}
	last := &ix.list[len(ix.list)-1]
	if last.Header.Segment == durable.SegmentID {
		return durable.SegmentID, durable.Offset
	}
	if last.Number < durable.Segment {
		return last.Header.Segment, last.End
	}
	return last.Header.Segment, 0
}

// cutAt ends the segments at the mark durable, because all later commits are in another segment.
func (ix *index) cutAt(durable Mark, now time.Time) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for i := range ix.list {
		s := &ix.list[i]
		switch {
		case s.Header.Segment == durable.SegmentID:
			s.End = durable.Offset
		case s.Number >= durable.Segment:
			s.End = 0
		default:
			continue
		}
		if s.Sealed.IsZero() {
			s.Sealed = now
		}
	}
}

// wait implements [tail.wait].
func (ix *index) wait(ctx context.Context, past Mark) error {
	for {
		ix.mu.Lock()
		if ix.head.Commit > past.Commit {
			ix.mu.Unlock()
			return nil
		}
		if ix.closed {
			ix.mu.Unlock()
			return ErrClosed
		}
		if ix.wake == nil {
			ix.wake = make(chan struct{})
		}
		wake := ix.wake
		ix.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// close ends every wait.
func (ix *index) close() {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.closed = true
	if ix.wake != nil {
		close(ix.wake)
		ix.wake = nil
	}
}

// first implements [tail.first].
func (ix *index) first() int {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if len(ix.list) == 0 {
		return ix.floor
	}
	return ix.list[0].Number
}

// segments implements [tail.segments].
func (ix *index) segments() []segment.Info {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return slices.Clone(ix.list)
}

// usage is the number of segments and the bytes of their files.
func (ix *index) usage() (segments int, bytes int64) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for i := range ix.list {
		bytes += ix.list[i].Size
	}
	return len(ix.list), bytes
}

// bytesWritten is the number of bytes published since the start.
func (ix *index) bytesWritten() int64 {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.written
}

// growth is the number of bytes beyond usage when the segment of that ID ends at end,
// including bytes that are written but not published.
func (ix *index) growth(id ID, end int64) int64 {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if n := len(ix.list); n > 0 && ix.list[n-1].Header.Segment == id {
		return end - ix.list[n-1].Size
	}
	return end
}

// oldest returns the oldest segment and the mark of its end; ok is false if no sealed
// segment is older than that of the head.
func (ix *index) oldest() (s segment.Info, end Mark, ok bool) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if len(ix.list) == 0 || ix.list[0].Sealed.IsZero() || ix.list[0].Number >= ix.head.Segment {
		return segment.Info{}, Mark{}, false
	}
	s = ix.list[0]
	if len(ix.list) > 1 && ix.list[1].Known() {
		end = ix.list[1].Header.Before()
	}
	end.Position, end.SegmentID = Position{Segment: s.Number, Offset: s.End}, s.Header.Segment
	return s, end, true
}

// forget removes the oldest segment from the list.
func (ix *index) forget() {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.floor = ix.list[0].Number + 1
	ix.list = append(ix.list[:0], ix.list[1:]...)
}

// fail records why commits fail.
func (ix *index) fail(err error, now time.Time) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.fault == nil {
		ix.since = now
	}
	ix.fault = err
}

// heal records that commits succeed.
func (ix *index) heal() {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.fault, ix.since = nil, time.Time{}
}

// trouble returns why commits fail, and since when; nil if they succeed.
func (ix *index) trouble() (since time.Time, why error) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.since, ix.fault
}
