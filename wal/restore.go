package wal

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"hwsagent/wal/internal/segment"
)

// restore finds out what an earlier process left: the segments, where they end, and
// the numbers that the next commit goes on from. It reads every segment's header, but
// only the newest two segments whole. A disk that refuses to be read here and there costs
// what lies there; it does not keep the agent from starting.
func (l *Log) restore() error {
	list, empty, err := l.listSegments()
	if err != nil {
		return err
	}
	var c segment.Reader
	for i := range list {
		s := &list[i]
		s.Header, err = readHeader(&c, l, s.Number, s.Size)
		if errors.Is(err, segment.ErrOtherFormat) || errors.Is(err, errNotOpened) {
			return err
		}
		if !s.Known() {
			l.logger.Warn("Segment header is unreadable", "segment", segment.Name(s.Number), "err", err)
		}
	}
	// Nothing is changed before every header has been seen.
	for _, name := range empty {
		l.budget.note("remove empty segment", l.dir.Remove(name))
	}
	l.index.list = list
	id := segment.Catalogue(list, l.targets.serve)
	told := Mark{Log: id}    // what headers say that there was
	durable := Mark{Log: id} // what of that was durable once
	for i := range list {
		s := &list[i]
		switch h := &s.Header; {
		case s.Foreign:
			l.logger.Error("Leaving out a segment of another log", "segment", segment.Name(s.Number))
		case s.Known():
			told = segment.Later(told, Mark{Log: id, Commit: h.Commit, Total: h.Total})
			durable = segment.Later(durable, Mark{Log: id, Commit: h.DurableCommit, Total: h.DurableTotal})
		}
		if 0 < s.End && s.End < s.Size {
			l.budget.note("cut off what had failed", l.cutOff(s))
		}
	}
	last, err := l.lastCommit(told)
	if err != nil {
		return err
	}
	return l.resume(told, durable, last)
}

// listSegments lists the files of segments, in the order of numbers, and the names of those that
// are empty: they could not be begun.
func (l *Log) listSegments() (list []segment.Info, empty []string, err error) {
	infos, err := l.dir.List()
	if err != nil {
		return nil, nil, fmt.Errorf("list segments: %w", err)
	}
	now := time.Now()
	for _, info := range infos {
		n, ok := segment.ParseName(info.Name)
		switch {
		case !ok:
			l.logger.Warn("A file that is not a segment lies among them", "file", info.Name)
		case info.Size == 0:
			empty = append(empty, info.Name)
		default:
			// By now's monotonic reading from here on: a step of the wall clock makes none older.
			sealed := now.Add(-max(0, now.Sub(info.ModTime)))
			list = append(list, segment.Info{Number: n, Size: info.Size, Sealed: sealed})
		}
	}
	slices.SortFunc(list, func(a, b segment.Info) int { return cmp.Compare(a.Number, b.Number) })
	return list, empty, nil
}

// tailPatience is how long a start waits, each time, before it asks the disk again for the
// last page of a segment. Commits there that it cannot read are lost even if the disk
// recovers later: nobody knows their numbers and totals, which the next commits continue.
var tailPatience = [...]time.Duration{100 * time.Millisecond, 300 * time.Millisecond, time.Second}

// lastCommit is the mark of the last commit that can be read, which is not before the one
// of that number unless a header says where it belongs: a page of an older segment may lie
// in a damaged one. It has no more than a Position if there is none. told is what headers say that there was.
func (l *Log) lastCommit(told Mark) (last Mark, err error) {
	var unbegun []string
	for i, s := range slices.Backward(l.index.list) {
		info, err := l.scanPatiently(&s)
		if err != nil {
			return Mark{}, fmt.Errorf("segment %s: %w", segment.Name(s.Number), err)
		}
		if info.TailRefused {
			l.disown(i, info)
		} else if info.Refused != nil {
			l.logger.Error("Pages of a segment cannot be read; what they hold is lost unless the disk recovers", "segment", segment.Name(s.Number), "err", info.Refused)
		}
		if l.unbegun(i, info) {
			unbegun = append(unbegun, segment.Name(s.Number))
			l.unbegin(i)
			continue
		}
		if info.Last.Commit > 0 && (s.Known() || info.Last.Commit > told.Commit) {
			l.refresh(l.index.list[max(0, i-1):], l.targets.durable(told.Log))
			for _, name := range unbegun { // the process was about to log what is durable now
				l.budget.note("remove a segment that was being begun", errors.Join(l.dir.Remove(name), l.dir.Sync()))
			}
			last = info.Last
			last.SegmentID = s.Header.Segment
			return last, nil
		}
	}
	if n := len(l.index.list); n > 0 {
		s := &l.index.list[n-1]
		return Mark{Position: Position{Segment: s.Number, Offset: s.End}, SegmentID: s.Header.Segment}, nil
	}
	return Mark{}, nil
}

// unbegun reports whether the i-th segment, the last one, may be removed: the process ended before it
// had logged again in this segment all commits that a failed write had left in doubt. The segment
// before has all of them. It is false if the disk refused to read a part of either segment.
func (l *Log) unbegun(i int, info segment.Contents) bool {
	list := l.index.list
	if i == 0 || i < len(list)-1 || info.Refused != nil || info.Last.Commit >= list[i].Header.Relogged || !list[i-1].Known() {
		return false
	}
	before, err := scan(l, &list[i-1])
	return err == nil && before.Refused == nil && before.Last.Commit > info.Last.Commit
}

// scanPatiently reads a segment whole, and again while the disk refuses its end. A segment
// that cannot be opened counts as one whose every page is refused. The error says that the
// segment is of another format.
func (l *Log) scanPatiently(s *segment.Info) (segment.Contents, error) {
	for tries := 0; ; tries++ {
		info, err := scan(l, s)
		if errors.Is(err, segment.ErrOtherFormat) {
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
func (l *Log) cutOff(s *segment.Info) error {
	f, err := l.dir.Open(segment.Name(s.Number), os.O_RDWR)
	if err != nil {
		return err
	}
	if err = f.Truncate(s.End); err == nil {
		s.Size, err = s.End, f.Sync()
	}
	return errors.Join(err, f.Close())
}

// unbegin takes the i-th segment, the last one, which is unbegun, off the list. The next header says in its place
// where the one before ends.
func (l *Log) unbegin(i int) {
	prev := &l.index.list[i-1]
	l.writer.prevID, l.writer.prevEnd = prev.Header.Segment, prev.End
	l.index.list = segment.Unfollow(l.index.list)
}

// disown ends a segment whose last page the disk refused to read. What follows may hold
// commits whose numbers and totals nobody knows, and which the next ones would
// contradict, should the disk think better of it: the numbers skip as many as there
// can be, and the next header says that the segment ends here.
func (l *Log) disown(i int, info segment.Contents) {
	s := &l.index.list[i]
	l.logger.Error("Segment is unreadable from some point on; what follows is lost", "segment", segment.Name(s.Number), "offset", info.End, "err", info.Refused)
	l.writer.number += uint64(s.End - info.End)
	if i == len(l.index.list)-1 {
		l.writer.prevID, l.writer.prevEnd = s.Header.Segment, info.End
	}
	s.End = info.End
}

// resume makes the numbers go on from the last commit that can be read, or from what
// headers or savepoints know of, if that is more. What was durable and is missing is
// damage, and cursors find out by the totals; the rest was lost to a power cut, and the
// next segment's header says so.
//
// told is what headers say that there was, and durable what of that they say was durable.
func (l *Log) resume(told, durable, last Mark) error {
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
		w.next = max(w.next, l.index.list[n-1].Number+1)
	}
	if last.Commit == 0 {
		// No commit can be read, but a header may say how many there had been.
		last.Commit, last.Total = durable.Commit, durable.Total
	}
	last.Log = id
	l.index.floor, l.index.head = w.next, last

	durable = segment.Later(segment.Later(last, durable), l.targets.durable(id))
	all := segment.Later(segment.Later(durable, told), known)
	w.written = last
	w.written.Commit, w.written.Total = all.Commit, all.Total
	w.durable = w.written
	l.index.settle(durable) // what was lost to a power cut was not, even if another one follows
	w.number += all.Commit
	w.lost = all.Total - durable.Total
	if damaged := durable.Total - last.Total; w.lost > 0 || damaged > 0 || all.Commit > last.Commit {
		l.logger.Warn("Samples that were acknowledged are not on the disk any more", "power_cut", w.lost, "damage", damaged)
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
