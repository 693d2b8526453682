package wal

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"hwsagent/wal/internal/segment"
)

// restore finds the state that an earlier process left: the segments, their ends, and the
// numbers from which the next commit continues. It reads the headers of all segments, but
// only the newest two segments whole. Data at unreadable places of the disk is lost, but
// does not prevent the start.
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
		if !s.Known() && l.isUnfinished(s.Number) {
			empty = append(empty, segment.Name(s.Number))
			s.Size = 0
		} else if !s.Known() {
			l.logger.Warn("Segment header is unreadable", "segment", segment.Name(s.Number), "err", err)
		}
	}
	list = slices.DeleteFunc(list, func(s segment.Info) bool { return s.Size == 0 })
	// Change files only after all headers were checked.
	for _, name := range empty {
		// The removal must be durable: refused commits were cut off these segments, and the next commits get their numbers.
		l.budget.note("remove empty segment", errors.Join(l.dir.Remove(name), l.dir.Sync()))
	}
	l.index.list = list
	id := segment.Catalogue(list, l.targets.serve)
	named := Mark{Log: id}   // the last commit that headers name
	durable := Mark{Log: id} // the last commit that headers name as durable
	for i := range list {
		s := &list[i]
		switch h := &s.Header; {
		case s.Foreign:
			l.logger.Error("Leaving out a segment of another log", "segment", segment.Name(s.Number))
		case s.Known():
			named = segment.Later(named, Mark{Log: id, Commit: h.Commit, Total: h.Total})
			durable = segment.Later(durable, Mark{Log: id, Commit: h.DurableCommit, Total: h.DurableTotal})
		}
		if 0 < s.End && s.End < s.Size {
			l.budget.note("cut off the failed write", l.cutOff(s))
		}
	}
	last, err := l.lastCommit(named, segment.Later(durable, l.targets.durable(id)))
	if err != nil {
		return err
	}
	return l.resume(named, durable, last)
}

// isUnfinished reports whether a process was moving commits to that segment when it ended: the segments before still have them.
func (l *Log) isUnfinished(number int) bool {
	f, err := l.openSegment(number)
	if err != nil {
		return false
	}
	defer f.Close()
	var b [len(unfinished)]byte
	n, _ := f.ReadAt(b[:], 0) // an unreadable one stays
	return string(b[:n]) == unfinished
}

// listSegments lists the segment files, in the order of numbers, and the names of empty files, which
// are segments that could not be begun.
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
			l.logger.Warn("A file among the segments is not a segment", "file", info.Name)
		case info.Size == 0:
			empty = append(empty, info.Name)
		default:
			// The monotonic reading of now keeps steps of the wall clock from changing the age.
			sealed := now.Add(-max(0, now.Sub(info.ModTime)))
			list = append(list, segment.Info{Number: n, Size: info.Size, Sealed: sealed})
		}
	}
	slices.SortFunc(list, func(a, b segment.Info) int { return cmp.Compare(a.Number, b.Number) })
	return list, empty, nil
}

// tailPatience has the delays before each retry of reading the last page of a segment at a
// start. Commits there that stay unreadable are lost even if the disk recovers later, because
// the next commits must continue their unknown numbers and totals.
var tailPatience = [...]time.Duration{100 * time.Millisecond, 300 * time.Millisecond, time.Second}

// lastCommit returns the mark of the last readable commit, or only a Position if there is none. named
// is the last commit that headers name, and durable the last that headers or savepoints name as
// durable. In a segment with a damaged header, only commits after named count, because the segment may hold a page of an older one.
func (l *Log) lastCommit(named, durable Mark) (last Mark, err error) {
	for i, s := range slices.Backward(l.index.list) {
		info, err := l.scanPatiently(&s)
		if err != nil {
			return Mark{}, fmt.Errorf("segment %s: %w", segment.Name(s.Number), err)
		}
		if info.TailRefused {
			l.disown(i, info)
		} else if info.Refused != nil {
			l.logger.Error("Pages of a segment cannot be read; their commits are lost unless the disk recovers", "segment", segment.Name(s.Number), "err", info.Refused)
		}
		if info.Last.Commit > 0 && (s.Known() || info.Last.Commit > named.Commit) {
			last, from := info.Last, min(max(0, i-1), l.firstBehind(i, durable))
			last.SegmentID = s.Header.Segment
			l.refresh(l.index.list[from:], l.targets.durable(named.Log))
			return last, nil
		}
	}
	if n := len(l.index.list); n > 0 {
		// The next commits get the numbers of commits that were cut off these segments. A power cut must not bring those back.
		l.refresh(l.index.list[max(0, n-2):], l.targets.durable(named.Log))
		s := &l.index.list[n-1]
		return Mark{Position: Position{Segment: s.Number, Offset: s.End}, SegmentID: s.Header.Segment}, nil
	}
	return Mark{}, nil
}

// scanPatiently reads a whole segment, and retries while its end is unreadable. A segment
// that cannot be opened counts as one whose pages are all unreadable. The error means that
// the segment has another format.
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

// cutOff truncates a segment's file to the end that the next header names. The file then
// keeps that end without the header, which may not be durable: the process may have ended
// after a failed fsync of the next segment, and later fsyncs do not make that durable.
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

// cutAgain cuts failed commits off sealed segments where the disk refused that before, so that later starts do not depend on the header of
// the next segment.
func (l *Log) cutAgain() {
	for _, s := range l.index.segments() {
		if s.Sealed.IsZero() || s.End <= 0 || s.End >= s.Size {
			continue
		}
		err := l.cutOff(&s)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if l.budget.note("cut off the failed write", err); err == nil {
			l.index.shrink(s.Number, s.End)
		}
	}
}

// disown ends a segment whose last page could not be read. The rest may hold commits with
// unknown numbers and totals, which new commits would contradict if the page became
// readable again. So the numbers skip as many commits as the rest can hold, and the
// next header says that the segment ends here.
func (l *Log) disown(i int, info segment.Contents) {
	s := &l.index.list[i]
	l.logger.Error("Segment is unreadable from some offset on; the commits after it are lost", "segment", segment.Name(s.Number), "offset", info.End, "err", info.Refused)
	l.writer.number += uint64(s.End - info.End)
	if i == len(l.index.list)-1 {
		l.writer.prevID, l.writer.prevEnd = s.Header.Segment, info.End
	}
	s.End = info.End
}

// resume continues the numbers from the last readable commit, or from a later one that
// headers or savepoints name. Missing commits that were durable are damage, which cursors
// detect by the totals. The others were lost to a power cut, and the next segment's header
// says so.
//
// named is the last commit that headers name, and durable the last that they name as durable.
func (l *Log) resume(named, durable, last Mark) error {
	w, id := l.writer, named.Log
	known := l.targets.highest(id) // ignores savepoints of other logs
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
	if l.refreshAgain != nil {
		proven := segment.Later(durable, l.targets.durable(id))
		l.index.prove(&proven)
		if n := len(l.index.list); n > 0 && w.prevID == (ID{}) {
			// Commits that were cut off the last segment may come back, with the numbers of the next commits.
			w.prevID, w.prevEnd = l.index.list[n-1].Header.Segment, l.index.list[n-1].End
		}
	}
	if last.Commit == 0 {
		// No commit is readable, but a header may name earlier ones.
		last.Commit, last.Total = durable.Commit, durable.Total
	}
	last.Log = id
	l.index.floor, l.index.head = w.next, last

	durable = segment.Later(segment.Later(last, durable), l.targets.durable(id))
	all := segment.Later(segment.Later(durable, named), known)
	w.written = last
	w.written.Commit, w.written.Total = all.Commit, all.Total
	w.durable = w.written
	l.index.settle(durable) // commits lost to a power cut must not count as durable, even after another cut
	w.number += all.Commit
	lost := all.Total - durable.Total
	w.lost = lost
	if proven := l.index.unproven(); proven != nil {
		w.lost = max(lost, l.lostAt(all.Total, *proven))
	}
	if damaged := durable.Total - last.Total; lost > 0 || damaged > 0 || all.Commit > last.Commit {
		l.logger.Warn("Acknowledged samples are no longer on the disk", "power_cut", lost, "damage", damaged)
		w.mark()
	}
	return nil
}

// lostAt returns how many samples before that total were lost to power cuts according to headers that may not be durable themselves,
// because they are behind the durable commit. Another power cut may take these headers, so the next header repeats the loss.
func (l *Log) lostAt(total uint64, durable Mark) (lost uint64) {
	for _, s := range l.index.list {
		if h := s.Header; s.Known() && h.Commit >= durable.Commit && h.Total == total {
			lost = max(lost, h.Total-h.Found)
		}
	}
	return lost
}

// mark logs an empty commit. After a power cut, no savepoint is then ahead of the head.
// After damage, cursors reach this commit and detect the missing samples, so ledgers add
// up even if no other commit follows.
func (w *writer) mark() {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.newBatch()
	b.refs = 1
	_ = w.begin(b) // begin records an error; the next commit has the same effect
	w.release(b)
}
