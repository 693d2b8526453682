package wal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"

	"hwsagent/wal/internal/segment"
)

var errNotOpened = errors.New("cannot open segment")

// readHeader reads the header of the segment of that number and size. The header is zero
// (Version 0) if it is damaged or the segment does not exist; the error is that of the disk, or
// segment.ErrOtherFormat.
func readHeader(c *segment.Reader, t tail, number int, size int64) (h segment.Header, err error) {
	f, err := t.openSegment(number)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return h, fmt.Errorf("%w %s: %w", errNotOpened, segment.Name(number), err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if h, err = c.ReadHeader(f, number, size); err != nil {
		return h, fmt.Errorf("segment %s: %w", segment.Name(number), err)
	}
	return h, nil
}

// locate returns the number of the segment in which reading continues after a mark.
func locate(t tail, after Mark) int {
	segments := t.segments()
	if len(segments) == 0 {
		return t.first()
	}
	return segment.Find(segments, t.head().Segment, after)
}

// oldest returns the mark before the oldest data in the log.
func oldest(t tail) (Mark, error) {
	head := t.head()
	for _, s := range t.segments() {
		switch {
		case s.Number > head.Segment:
			return head, nil
		case s.Foreign:
			continue
		case s.Known():
			m := s.Header.Before()
			m.Total = s.Header.Total // a reader that begins here has not lost the samples of an earlier power cut
			return m, nil
		}
		info, err := scan(t, &s)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err = cmp.Or(err, info.Refused); err != nil {
			return Mark{}, fmt.Errorf("scan segment %s: %w", segment.Name(s.Number), err)
		}
		if info.Commits > 0 && info.Last.Commit <= head.Commit {
			m := Mark{Position: Position{Segment: s.Number}, Log: head.Log, Commit: info.FirstCommit - 1, Total: info.Before}
			return m, nil
		}
	}
	return head, nil
}

// scan reads a whole segment. It returns an error if the segment cannot be opened or has another format.
func scan(t tail, s *segment.Info) (info segment.Contents, err error) {
	f, err := t.openSegment(s.Number)
	if err != nil {
		return info, fmt.Errorf("open segment %s: %w", segment.Name(s.Number), err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return segment.Scan(f, s.Number, s.End)
}
