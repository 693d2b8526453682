package wal

import (
	"errors"

	"hwsagent/wal/queue"
)

// This file moves a lane between its own cursor and the reading at the head of the log.

// last is the mark of the last entry that the lane returned, or where it was placed. The caller holds nextMu.
func (l *Lane) last() Mark {
	if l.at != nil {
		return l.at.end
	}
	return l.cursor.last
}

// place moves the lane behind the mark after; it will read up to end, which may be zero.
func (l *Lane) place(after, end Mark) {
	if l.at != nil && l.at.end == after && end == (Mark{}) {
		return
	}
	l.leave()
	l.cursor.place(after, end)
}

// read returns the next entry, nil if there is none up to the head.
func (l *Lane) read(head Mark) (*Entry, error) {
	if l.at == nil {
		return l.cursor.next(head)
	}
	to, err := l.reading.next(l.at)
	switch {
	case errors.Is(err, errCut):
		l.leave()
		return l.cursor.next(head)
	case err != nil:
		l.leave() // each lane tries again on its own, and decides when to give up the page
		return nil, err
	case to == nil:
		return nil, nil
	}
	l.at = to
	for _, f := range to.found {
		l.found.add(f)
	}
	l.found.add(finding{segment: to.end.Segment})
	return &to.entry, nil
}

// join makes the lane follow the reading if it has read everything. A backlog is never at the head.
func (l *Lane) join() {
	if l.at != nil || l.kind != queue.Live {
		return
	}
	if l.at = l.reading.join(l.cursor); l.at != nil {
		l.cursor = nil
	}
}

// leave gives the lane a cursor of its own, which continues after the last entry.
func (l *Lane) leave() {
	if l.at == nil {
		return
	}
	c, found := l.reading.leave(l.at)
	for _, f := range found {
		l.found.add(f)
	}
	if c == nil {
		c = newCursor(l.tail, l.log, l.found)
	}
	c.log, c.found = l.log, l.found
	if c.last != l.at.end {
		c.shut()
		c.place(l.at.end, Mark{})
		if n := l.at.end.Segment; n >= l.tail.first() {
			c.want = min(c.want, n) // the lane has not counted the damage in the rest of that segment
		}
	}
	l.cursor, l.at = c, nil
}

// release releases everything that the lane holds. It may read again afterwards.
func (l *Lane) release() {
	l.leave()
	l.cursor.release()
}
