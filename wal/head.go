package wal

import (
	"context"
	"io"
	"time"
)

// tail is the writer's end of the log as cursors see it. *Log implements it. All
// methods are safe for concurrent use and none waits for the disk's writes.
type tail interface {
	// head is the mark of the last commit that may be read. It is never behind what a
	// Commit has returned nil for.
	head() Mark

	// wait returns when the head is past the given mark, or with ctx's error, or with
	// ErrClosed.
	wait(ctx context.Context, past Mark) error

	// first is the number of the oldest segment that is kept. Segments below it are
	// gone or about to go, and what the ledgers lost with them is written.
	first() int

	// segments lists the segments that are kept, in ascending order. Numbers may have
	// holes.
	segments() []segmentRef

	// openSegment opens segment n for reading. The error is fs.ErrNotExist if there is
	// none. The file may be unlinked while it is open.
	openSegment(n int) (segmentFile, error)

	// pool has the series that cursors share.
	pool() *seriesPool
}

// segmentRef is one segment in a listing.
type segmentRef struct {
	Number int

	// Size is how many bytes of the file may be read. That is the head's offset for the
	// active segment; the last good offset for one that a write error ended and that
	// could not be truncated (in an earlier process too: see [Header.PrevEnd]); else
	// the file's size.
	Size int64

	Created time.Time // when it began, by the wall clock of that time; zero if not known

	// Before is the smallest commit number that the header of a later segment names as the
	// last one before that segment, if Next says that there is a readable one. Commits beyond
	// it may stand here, but stand there as well.
	Before uint64
	Next   bool
}

// follows notes that a later segment follows on the commit of that number.
func (s *segmentRef) follows(commit uint64) {
	if !s.Next || commit < s.Before {
		s.Before, s.Next = commit, true
	}
}

// comesAgain reports whether a later segment has the commit of that number, too.
func (s segmentRef) comesAgain(number uint64) bool { return s.Next && number > s.Before }

// segmentFile is one segment opened for reading.
type segmentFile interface {
	io.ReaderAt
	io.Closer
}
