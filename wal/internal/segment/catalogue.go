package segment

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"time"
)

// Info describes one segment file, by its own header and those of all other segments.
type Info struct {
	Number int   // as in its file name
	Size   int64 // of the file, bytes

	// End is the number of readable bytes: all of them, or fewer if a write error ended the segment and it could
	// not be truncated (see [Header.PrevEnd]); in the active segment, those up to the head.
	End int64

	Header  Header // zero (Version 0) if it is unreadable or of another log
	Foreign bool   // the segment belongs to another log

	// Sealed is the time of the last write, with a monotonic reading, so that a step of the
	// wall clock does not make it older; zero while it is active.
	Sealed time.Time
}

// Known reports whether the header could be read.
func (s *Info) Known() bool { return s.Header.Version != 0 }

// Created is the time when the segment began, by the wall clock at that time; zero if the header is unreadable.
func (s *Info) Created() time.Time {
	if !s.Known() {
		return time.Time{}
	}
	return time.UnixMilli(s.Header.CreatedAt)
}

// Catalogue compares the headers of a list of segments, in the order of numbers, and sets End and
// Foreign of each. It returns the ID of their log: the one for which served is true, otherwise that of most
// headers; the zero ID if no header is readable.
func Catalogue(list []Info, served func(ID) bool) ID {
	log := ownLog(list, served)
	for i := range list {
		s := &list[i]
		s.End = s.Size
		h := &s.Header
		if s.Known() && h.Log != log {
			s.Header, s.Foreign, s.End = Header{}, true, 0
		}
		if !s.Known() {
			continue
		}
		if i > 0 && list[i-1].Number == h.Number-1 {
			list[i-1].endsAt(h.PrevID, h.PrevEnd)
		}
	}
	return log
}

// endsAt sets the end of s to the one in the header of the next segment; a zero ID means that it has none. A
// segment with an unreadable header is assumed to be the one that the next header names.
func (s *Info) endsAt(id ID, end int64) {
	switch {
	case id == (ID{}):
	case s.Known() && s.Header.Segment != id:
		s.End = 0
	default:
		s.End = min(s.End, end)
	}
}

// ownLog returns the ID of the log of these segments. If there are segments of several logs, it is the ID that
// the savepoints know, otherwise that of most segments. It is zero if no header is readable.
func ownLog(list []Info, served func(ID) bool) ID {
	segments := map[ID]int{}
	for i := range list {
		if list[i].Known() {
			segments[list[i].Header.Log]++
		}
	}
	var own ID
	for id, n := range segments {
		switch a, b := served(id), served(own); {
		case own == (ID{}), a && !b, a == b && n > segments[own]:
			own = id
		case a == b && n == segments[own] && bytes.Compare(id[:], own[:]) < 0:
			own = id // an arbitrary choice, but the same each time
		}
	}
	return own
}

// Find returns the number of the segment in which reading continues after a mark of the list's log; head is the
// number of the newest segment in use. The segment may be earlier than necessary, never later: readers skip commits
// up to the mark by their numbers.
func Find(list []Info, head int, after Mark) int {
	for i := range list {
		if s := &list[i]; s.Number == after.Segment && s.Header.of(after.Log) && s.Header.Segment == after.SegmentID {
			return after.Segment
		}
	}
	// The segment of the mark does not exist, or another one has its number: a power cut
	// took it, or its header is damaged. Headers tell which commits the segments before have.
	for _, s := range slices.Backward(list) {
		switch h := &s.Header; {
		case s.Number > head: // it could not be begun, so its header may be from before an error
		case !h.of(after.Log) || h.Commit > after.Commit:
		default:
			return s.Number
		}
	}
	return list[0].Number
}

// Name is the file name of a segment.
func Name(n int) string { return fmt.Sprintf("%08d", n) }

// ParseName is the inverse of Name; ok is false for other names.
func ParseName(name string) (n int, ok bool) {
	if len(name) < 8 {
		return 0, false
	}
	for _, c := range []byte(name) {
		if c < '0' || c > '9' || n > (math.MaxInt-9)/10 {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, name == Name(n)
}
