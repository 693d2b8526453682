package wal

import (
	"context"
	"slices"
	"sync"
	"time"

	"hwsagent/wal/internal/segment"
)

// index is what there is to read: the kept segments and the head. It is where
// cursors, status and writer meet, and its mutex is never held over a disk call.
type index struct {
	mu     sync.Mutex // guards everything below
	head   Mark
	safe   Mark           // the last commit that a power cut cannot take
	list   []segment.Info // by number; holes are legal
	floor  int            // number of the first segment to come while list is empty
	wake   chan struct{}
	closed bool

	written int64 // bytes that were published since the start

	fault error     // why commits fail now; nil when all is well
	since time.Time // when that began
}

// mark is the head.
func (ix *index) mark() Mark {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.head
}

// settle notes that everything up to m is durable.
func (ix *index) settle(m Mark) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.safe = m
}

// durable is the last commit that a power cut cannot take.
func (ix *index) durable() Mark {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.safe
}

// publish moves the head to m, the end of a commit in the segment of h.
func (ix *index) publish(h segment.Header, m Mark) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if n := len(ix.list); n == 0 || ix.list[n-1].Number != m.Segment {
		segment.Follow(ix.list, &h)
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

// wait is [tail.wait].
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

// first is [tail.first].
func (ix *index) first() int {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if len(ix.list) == 0 {
		return ix.floor
	}
	return ix.list[0].Number
}

// segments is [tail.segments].
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

// bytesWritten is how many bytes were published since the start.
func (ix *index) bytesWritten() int64 {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.written
}

// growth is how many bytes more than usage says there are once the segment of that ID
// ends there. What is written and not published yet is in it.
func (ix *index) growth(id ID, end int64) int64 {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if n := len(ix.list); n > 0 && ix.list[n-1].Header.Segment == id {
		return end - ix.list[n-1].Size
	}
	return end
}

// oldest is the oldest segment and the mark of its end; false if there is none that
// is sealed and older than the head's.
func (ix *index) oldest() (s segment.Info, end Mark, ok bool) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if len(ix.list) == 0 || ix.list[0].Sealed.IsZero() || ix.list[0].Number >= ix.head.Segment {
		return segment.Info{}, Mark{}, false
	}
	s = ix.list[0]
	if len(ix.list) > 1 && ix.list[1].Known() {
		for i := range ix.list[1:] {
			later := &ix.list[i+1]
			if later.Known() && later.Header.Commit == s.Before { // what lies behind that stands there once more
				end = later.Header.Before()
				break
			}
		}
	}
	end.Position, end.SegmentID = Position{Segment: s.Number, Offset: s.End}, s.Header.Segment
	return s, end, true
}

// forget takes the oldest segment off the list.
func (ix *index) forget() {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.floor = ix.list[0].Number + 1
	ix.list = append(ix.list[:0], ix.list[1:]...)
}

// fail notes why commits fail.
func (ix *index) fail(err error, now time.Time) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.fault == nil {
		ix.since = now
	}
	ix.fault = err
}

// heal notes that commits succeed.
func (ix *index) heal() {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.fault, ix.since = nil, time.Time{}
}

// trouble is since when commits fail, and why; nil if they do not.
func (ix *index) trouble() (since time.Time, why error) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.since, ix.fault
}
