package wal

import (
	"bytes"
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
// only the newest two segments whole. A disk that refuses to be read here and there costs
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

	headers := make([]Header, len(list))
	var c commitReader
	for i := range list {
		if headers[i], err = l.readHeader(&c, &list[i]); err != nil {
			return fmt.Errorf("segment %s: %w", segmentName(list[i].number), err)
		}
	}
	id := ownLog(headers, l.targets.serve)
	told := Mark{Log: id}    // what headers say that there was
	durable := Mark{Log: id} // what of that was durable once
	for i, h := range headers {
		s := &list[i]
		if h.Version == 0 {
			continue
		}
		if h.Log != id {
			l.logger.Error("Leaving out a segment of another log", "segment", segmentName(s.number), "log", h.Log.String())
			s.end = 0
			continue
		}
		told = later(told, Mark{Log: id, Commit: h.Commit, Total: h.Total})
		durable = later(durable, Mark{Log: id, Commit: h.DurableCommit, Total: h.DurableTotal})
		if !h.names(id, s.number) {
			l.logger.Error("A segment begins like another one; where it holds what it should, that is read", "segment", segmentName(s.number), "like", segmentName(h.Number))
			continue
		}
		s.id, s.known, s.created = h.Segment, true, time.UnixMilli(h.CreatedAt)
		s.before = Mark{Log: h.Log, Commit: h.Commit, Total: h.Found}
		if i > 0 && list[i-1].number == h.Number-1 && h.PrevID != (ID{}) {
			prev := &list[i-1]
			switch {
			case prev.known && prev.id != h.PrevID:
				prev.end = 0
			case h.PrevEnd < prev.end:
				prev.end = h.PrevEnd
				l.budget.note("cut off what had failed", l.cutOff(prev))
			}
		}
	}

	last, passed, err := l.lastCommit(told.Commit)
	if err != nil {
		return err
	}
	return l.resume(told, durable, last, passed)
}

// ownLog is the ID of the log that segments with these headers are of: where a segment of
// another log has got among them, that of the savepoints, or else of most segments. It is
// zero if no header is readable.
func ownLog(headers []Header, served func(ID) bool) ID {
	segments := map[ID]int{}
	for _, h := range headers {
		if h.Version != 0 {
			segments[h.Log]++
		}
	}
	var own ID
	for id, n := range segments {
		switch a, b := served(id), served(own); {
		case own == (ID{}), a && !b, a == b && n > segments[own]:
			own = id
		case a == b && n == segments[own] && bytes.Compare(id[:], own[:]) < 0:
			own = id // any, but the same each time
		}
	}
	return own
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
	for tries := 1; err != nil && !errors.Is(err, errNewerFormat) && tries < scanTries; tries++ {
		what, err = c.next()
	}
	if errors.Is(err, errNewerFormat) {
		return h, err
	}
	if err != nil || what != foundHeader {
		l.logger.Warn("Segment header is unreadable", "segment", segmentName(s.number), "err", err)
		return Header{}, nil
	}
	return c.header, nil
}

// tailPatience is how long a start waits, each time, before it asks the disk again for the
// last page of a segment. Commits there that it cannot read are lost even if the disk
// recovers later: nobody knows their numbers and totals, which the next commits continue.
var tailPatience = [...]time.Duration{100 * time.Millisecond, 300 * time.Millisecond, time.Second}

// lastCommit is the mark of the last commit that can be read, which is not before the one
// of that number unless a header says where it belongs: a page of an older segment may lie
// in a damaged one. It has no more than a Position if there is none. It is passed if it
// lies before others, because pages changed places: cursors take those, and never come to it.
//
// Only a segment that was read to its end, without an error of the disk, may be removed.
func (l *Log) lastCommit(told uint64) (last Mark, passed bool, err error) {
	list := l.index.list
	removable := true // those after the i-th were read to their ends
	for i := range slices.Backward(list) {
		s := &list[i]
		info, err := l.scanPatiently(s)
		if err != nil {
			return Mark{}, false, fmt.Errorf("segment %s: %w", segmentName(s.number), err)
		}
		if info.TailRefused {
			l.disown(s, info)
		} else if info.Refused != nil {
			l.logger.Error("Pages of a segment cannot be read; what they hold is lost unless the disk recovers", "segment", segmentName(s.number), "err", info.Refused)
		}
		if info.Last.Commit > 0 && (s.known || info.Last.Commit > told) {
			last, passed = info.Last, info.Last.Offset != info.End
			last.Position, last.SegmentID = Position{Segment: s.number, Offset: info.End}, s.id
			if before, ok := l.completeBefore(i, last); ok {
				// The process ended while it logged again what a failed write had left in doubt.
				// This segment has a beginning of that, the one before has all of it.
				if info.Refused == nil {
					l.budget.note("remove a segment that was being begun", l.unbegin(i))
				}
				return before, false, nil
			}
			again := i + 1
			for again < len(list) && (!list[again].known || list[again].before.Commit >= last.Commit) {
				again++
			}
			if again < len(list) && removable {
				// The same, but not even a beginning can be read. Its header would say that the
				// commits behind the one that it names come once more.
				l.budget.note("remove a segment that was being begun", l.unbegin(again))
				return last, passed, nil
			}
			l.budget.note("sync the newest segments", l.syncSegments(list[max(0, i-1):]))
			return last, passed, nil
		}
		removable = removable && info.Refused == nil
	}
	if n := len(list); n > 0 {
		s := list[n-1]
		return Mark{Position: Position{Segment: s.number, Offset: s.end}, SegmentID: s.id}, false, nil
	}
	return Mark{}, false, nil
}

// completeBefore is the last commit of the segment before the i-th one, if that segment
// was read to its end and goes further than last, the last commit of the i-th.
func (l *Log) completeBefore(i int, last Mark) (before Mark, ok bool) {
	list := l.index.list
	if i == 0 || !list[i].known || !list[i-1].known {
		return Mark{}, false
	}
	info, err := l.scan(&list[i-1])
	if err != nil || info.Refused != nil || info.Last.Commit <= last.Commit {
		return Mark{}, false
	}
	before = info.Last
	before.Position, before.SegmentID = Position{Segment: list[i-1].number, Offset: info.End}, list[i-1].id
	return before, true
}

// scanPatiently reads a segment whole, and again while the disk refuses its end. A segment
// that cannot be opened counts as one whose every page is refused. The error says that the
// format is newer than this program.
func (l *Log) scanPatiently(s *segment) (segmentInfo, error) {
	for tries := 0; ; tries++ {
		info, err := l.scan(s)
		if errors.Is(err, errNewerFormat) {
			return info, err
		}
		if err != nil {
			info.Refused, info.TailRefused = err, true
		}
		if !info.TailRefused || tries == len(tailPatience) {
			return info, nil
		}
		time.Sleep(tailPatience[tries])
	}
}

// cutOff makes a segment's file end where the next header says that the segment does, so
// that it stays so without that header: the process that wrote it may have ended when an
// fsync of it had failed, and then no other fsync makes it durable.
func (l *Log) cutOff(s *segment) error {
	f, err := l.dir.open(segmentName(s.number), os.O_RDWR)
	if err != nil {
		return err
	}
	if err = f.Truncate(s.end); err == nil {
		s.size, err = s.end, f.Sync()
	}
	return errors.Join(err, f.Close())
}

// unbegin removes the segments from the i-th on, of which the one before has all commits
// that can be read. The next header says in their place where that one ends.
func (l *Log) unbegin(i int) error {
	prev, gone := l.index.list[i-1], slices.Clone(l.index.list[i:])
	l.index.list = l.index.list[:i]
	l.writer.prevID, l.writer.prevEnd = prev.id, prev.end
	errs := []error{l.syncSegments(l.index.list[max(0, i-2):])} // the process was about to log again what was in these
	for _, s := range gone {
		errs = append(errs, l.dir.remove(segmentName(s.number)))
	}
	return errors.Join(append(errs, l.dir.sync())...)
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

// disown ends a segment whose last page the disk refused to read. What follows may hold
// commits whose numbers and totals nobody knows, and which the next ones would
// contradict, should the disk think better of it: the numbers skip as many as there
// can be, and the next header says that the segment ends here.
func (l *Log) disown(s *segment, info segmentInfo) {
	l.logger.Error("Segment is unreadable from some point on; what follows is lost", "segment", segmentName(s.number), "offset", info.End, "err", info.Refused)
	l.writer.number += uint64(s.end - info.End)
	if s.number == l.index.list[len(l.index.list)-1].number {
		l.writer.prevID, l.writer.prevEnd = s.id, info.End
	}
	s.end = info.End
}

// syncSegments makes durable what a process that was killed had written and not yet
// synced. That is in the newest segment that has a commit and in the one before it. The header
// of a segment without a commit may say where the one before it ends: if a power cut
// took that, what failed would come back.
func (l *Log) syncSegments(newest []segment) error {
	var errs []error
	for _, s := range newest {
		f, err := l.dir.open(segmentName(s.number), os.O_RDWR)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, f.Sync(), f.Close())
	}
	return errors.Join(append(errs, l.dir.sync())...)
}

// resume makes the numbers go on from the last commit that can be read, or from what
// headers or savepoints know of, if that is more. What was durable and is missing is
// damage, and cursors find out by the totals; the rest was lost to a power cut, and the
// next segment's header says so. If the last commit is passed, cursors need a later one to
// find out.
//
// told is what headers say that there was, and durable what of that they say was durable.
func (l *Log) resume(told, durable, last Mark, passed bool) error {
	w, id := l.writer, told.Log
	known := l.targets.highest(id) // savepoints of another log say nothing about this one
	if id == (ID{}) {
		id = known.Log
	}
	if id == (ID{}) {
		_, _ = rand.Read(id[:]) // it never fails
	}
	w.next = known.Segment + 1
	if known == (Mark{}) {
		w.next = 0
	}
	if n := len(l.index.list); n > 0 {
		w.next = max(w.next, l.index.list[n-1].number+1)
	}
	if last.Commit == 0 {
		// No commit can be read, but a header may say how many there had been.
		last.Commit, last.Total = durable.Commit, durable.Total
	}
	last.Log = id
	l.index.floor, l.index.head = w.next, last

	durable = later(later(last, durable), l.targets.durable(id))
	all := later(later(durable, told), known)
	w.written = last
	w.written.Commit, w.written.Total = all.Commit, all.Total
	w.durable = w.written
	l.index.settle(durable) // what was lost to a power cut was not, even if another one follows
	w.number += all.Commit
	w.lost = all.Total - durable.Total
	if damaged := durable.Total - last.Total; w.lost > 0 || damaged > 0 || all.Commit > last.Commit {
		l.logger.Warn("Samples that were acknowledged are not on the disk any more", "power_cut", w.lost, "damage", damaged)
		passed = true
	}
	if passed {
		w.mark()
	}
	return nil
}

// mark logs an empty commit. After a power cut it makes the head a commit that no
// savepoint is ahead of, and after damage one that cursors come to, so that ledgers add
// up even if nothing else is ever logged.
func (w *writer) mark() {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.newBatch()
	b.refs = 1
	_ = w.begin(b) // an error is noted, and the next commit does as well
	w.release(b)
}
