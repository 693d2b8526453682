package wal

import (
	"context"
	"io"

	"hwsagent/wal/internal/segment"
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
	segments() []segment.Info

	// openSegment opens segment n for reading. The error is fs.ErrNotExist if there is
	// none. The file may be unlinked while it is open.
	openSegment(n int) (segmentFile, error)

	// pool has the series that cursors share.
	pool() *seriesPool
}

// segmentFile is one segment opened for reading.
type segmentFile interface {
	io.ReaderAt
	io.Closer
}
