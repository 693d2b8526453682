package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// opener opens segments for reading, as a tail does.
type opener interface {
	openSegment(n int) (segmentFile, error)
}

// readHeader reads a segment's header. It is zero (Version 0) if it is damaged or the
// segment is gone; the error is the disk's, or says that the format is newer.
func readHeader(t opener, s segmentRef) (Header, error) {
	f, err := t.openSegment(s.Number)
	if errors.Is(err, fs.ErrNotExist) {
		return Header{}, nil
	}
	if err != nil {
		return Header{}, fmt.Errorf("open segment %08d: %w", s.Number, err)
	}
	defer f.Close()
	var c commitReader
	// The header is the first record, so what does not fit the first page is no header.
	c.reset(f, min(s.Size, pageSize), true)
	if found, err := c.next(); err != nil || found != foundHeader {
		return Header{}, err
	}
	return c.header, nil
}

// locate is the number of the segment in which to read on after the given mark, which
// belongs to the tail's log. The segment may be an earlier one than it need be, never
// a later one; a reader skips the commits up to the mark by their numbers. A header that
// the disk refuses to read says nothing: whoever reads the segment meets the error again,
// and can give the page up.
func locate(t tail, after Mark) (segment int) {
	segments := t.segments()
	if i := slices.IndexFunc(segments, func(s segmentRef) bool { return s.Number == after.Segment }); i >= 0 {
		h, err := readHeader(t, segments[i])
		if err == nil && h.Version != 0 && h.Log == after.Log && h.Segment == after.SegmentID {
			return after.Segment
		}
	}
	// The segment is gone, or another one has its number: a power cut took it, or its
	// header is damaged. A header says which commits are in the segments before.
	head := t.head()
	again := false // a later segment has what follows, perhaps once more
	for i, s := range slices.Backward(segments) {
		if s.Number > head.Segment {
			continue // it could not be begun: its header says what came before an error
		}
		h, err := readHeader(t, s)
		switch {
		case err != nil || !h.names(after.Log, s.Number) || h.Commit > after.Commit:
		case !again && i > 0 && h.PrevID != (ID{}):
			// It may have been begun after an error, with what was not durable then. If a power
			// cut has torn it, that is in one of those before still.
			again = true
		default:
			return s.Number
		}
	}
	if len(segments) == 0 {
		return t.first()
	}
	return segments[0].Number
}

// oldest is the mark of everything before what the log still has.
func oldest(t tail) (Mark, error) {
	head := t.head()
	for _, s := range t.segments() {
		if s.Number > head.Segment {
			break
		}
		f, err := t.openSegment(s.Number)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Mark{}, fmt.Errorf("open segment %08d: %w", s.Number, err)
		}
		info, err := scanSegment(f, s.Size)
		if err = errors.Join(err, f.Close()); err != nil {
			return Mark{}, fmt.Errorf("scan segment %08d: %w", s.Number, err)
		}
		switch {
		case info.Header.Version == 0 && info.Refused != nil:
			return Mark{}, fmt.Errorf("scan segment %08d: %w", s.Number, info.Refused)
		case info.Header.names(head.Log, s.Number):
			m := markBefore(info.Header, s.Number)
			m.Total = info.Header.Total // what a power cut took before is nobody's loss here
			return m, nil
		case s.comesAgain(info.Last.Commit):
			// It has changed places with a later one.
		case info.Commits > 0 && info.Last.Commit <= head.Commit:
			return Mark{
				Position: Position{Segment: s.Number}, Log: head.Log,
				Commit: info.FirstCommit - 1, Total: info.Before,
			}, nil
		}
	}
	return head, nil
}
