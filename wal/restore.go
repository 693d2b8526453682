package wal

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// restore finds out what an earlier process left: the segments, where they end, and
// the numbers that the next commit goes on from. It reads every segment's header, but
// only the newest segment whole. A disk that refuses to be read here and there costs
// what lies there; it does not keep the agent from starting.
func (l *Log) restore() error {
	infos, err := l.dir.list()
	if err != nil {
		return fmt.Errorf("list segments: %w", err)
	}
	now := time.Now()
	for _, info := range infos {
		n, ok := parseSegmentName(info.name)
		if !ok {
			l.logger.Warn("A file that is not a segment lies among them", "file", info.name)
			continue
		}
		if info.size == 0 {
			// A segment that could not be begun.
			l.budget.note("remove empty segment", l.dir.remove(info.name))
			continue
		}
		// By now's monotonic reading from here on: a step of the wall clock makes none older.
		s := segment{number: n, size: info.size, end: info.size, sealed: now.Add(-max(0, now.Sub(info.modTime)))}
		l.index.list = append(l.index.list, s)
	}
	list := l.index.list
	slices.SortFunc(list, func(a, b segment) int { return cmp.Compare(a.number, b.number) })

	var newest Header
	var c commitReader
	for i := range list {
		h, err := l.readHeader(&c, &list[i])
		if err != nil {
			return fmt.Errorf("segment %s: %w", segmentName(list[i].number), err)
		}
		if h.Version == 0 {
			continue
		}
		newest = h
		list[i].id, list[i].known = h.Segment, true
		list[i].before = Mark{Log: h.Log, Commit: h.Commit, Total: h.Found}
		if i > 0 && list[i-1].number == h.Number-1 && h.PrevID != (ID{}) {
			prev := &list[i-1]
			switch {
			case prev.known && prev.id != h.PrevID:
				prev.end = 0
			case h.PrevEnd < prev.end:
				prev.end = h.PrevEnd
			}
		}
	}

	last, err := l.lastCommit()
	if err != nil {
		return err
	}
	return l.resume(newest, last)
}

// readHeader reads a segment's header; its Version is 0 if it is unreadable. The
// error says that the format is newer than this program, or is the disk's.
func (l *Log) readHeader(c *commitReader, s *segment) (h Header, err error) {
	f, err := l.dir.open(segmentName(s.number), os.O_RDONLY)
	if err != nil {
		return h, fmt.Errorf("open: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	c.reset(f, min(s.size, pageSize), true)
	what, err := c.next()
	if errors.Is(err, errNewerFormat) {
		return h, err
	}
	if err != nil || what != foundHeader {
		l.logger.Warn("Segment header is unreadable", "segment", segmentName(s.number), "err", err)
		return Header{}, nil
	}
	return c.header, nil
}

// lastCommit is the mark of the last commit that can be read. It has no more than a
// Position if there is none.
func (l *Log) lastCommit() (Mark, error) {
	list := l.index.list
	for i := range slices.Backward(list) {
		s := &list[i]
		info, err := l.scan(s)
		if errors.Is(err, errNewerFormat) {
			return Mark{}, fmt.Errorf("segment %s: %w", segmentName(s.number), err)
		}
		if err != nil {
			l.disown(s, info, err)
		}
		if info.Last.Commit > 0 {
			last := info.Last
			last.Segment, last.SegmentID = s.number, s.id
			l.budget.note("sync the newest segment", l.syncSegment(s.number))
			return last, nil
		}
	}
	if n := len(list); n > 0 {
		s := list[n-1]
		return Mark{Position: Position{Segment: s.number, Offset: s.end}, SegmentID: s.id}, nil
	}
	return Mark{}, nil
}

// scan reads a segment whole.
func (l *Log) scan(s *segment) (info segmentInfo, err error) {
	f, err := l.dir.open(segmentName(s.number), os.O_RDONLY)
	if err != nil {
		return info, fmt.Errorf("open: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return scanSegment(f, s.end)
}

// disown ends a segment where the disk refused to be read. What follows may hold
// commits whose numbers and totals nobody knows, and which the next ones would
// contradict, should the disk think better of it: the numbers skip as many as there
// can be, and the next header says that the segment ends here.
func (l *Log) disown(s *segment, info segmentInfo, err error) {
	l.logger.Error("Segment is unreadable from some point on; what follows is lost", "segment", segmentName(s.number), "offset", info.End, "err", err)
	l.writer.number += uint64(s.end - info.End)
	if s.number == l.index.list[len(l.index.list)-1].number {
		l.writer.prevID, l.writer.prevEnd = s.id, info.End
	}
	s.end = info.End
}

// syncSegment makes durable what a process that was killed had written and not yet
// synced. That can only be in the newest segment.
func (l *Log) syncSegment(n int) error {
	f, err := l.dir.open(segmentName(n), os.O_RDWR)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close(), l.dir.sync())
}

// resume makes the numbers go on from the last commit that can be read, or from what
// a savepoint knows of, if that is more.
func (l *Log) resume(newest Header, last Mark) error {
	w, known := l.writer, l.targets.highest(newest.Log)
	if last.Commit == 0 {
		// No commit can be read, but a header may say how many there had been.
		last.Log, last.Commit, last.Total = newest.Log, newest.Commit, newest.Total
	}
	id := newest.Log
	switch {
	case id == (ID{}):
		id = known.Log
	case known.Log != id:
		known = Mark{} // savepoints of another log say nothing about this one
	}
	if id == (ID{}) {
		if _, err := rand.Read(id[:]); err != nil {
			return fmt.Errorf("name log: %w", err)
		}
	}
	last.Log = id

	w.next = known.Segment + 1
	if known == (Mark{}) {
		w.next = 0
	}
	if n := len(l.index.list); n > 0 {
		w.next = max(w.next, l.index.list[n-1].number+1)
	}
	l.index.floor, l.index.head = w.next, last
	w.written = last
	w.written.Commit, w.written.Total = max(last.Commit, known.Commit), max(last.Total, known.Total)
	w.durable = w.written
	w.number += w.written.Commit
	w.lost = w.written.Total - last.Total
	if w.lost > 0 || w.written.Commit > last.Commit {
		l.logger.Warn("Samples that were acknowledged before a power cut are not on the disk", "samples", w.lost)
		w.mark()
	}
	return nil
}

// mark logs an empty commit. After a power cut it makes the head a commit that no
// savepoint is ahead of, so that ledgers add up even if nothing else is ever logged.
func (w *writer) mark() {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.newBatch()
	b.refs = 1
	_ = w.begin(b) // an error is noted, and the next commit does as well
	w.release(b)
}
