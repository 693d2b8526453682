package wal

import (
	"context"
	"io"

	"hwsagent/wal/internal/segment"
)

// tail is the writer's end of the log as cursors see it. *Log implements it. All
// methods are safe for concurrent use and do not wait for disk writes.
type tail interface {
	// head is the mark of the last readable commit. Every commit for which Commit has
	// returned nil is readable.
	head() Mark

	// safe is the mark of the last commit that an fsync has confirmed, as far as this process knows.
	safe() Mark

	// wait returns when the head is past the given mark, or with ctx's error, or with
	// ErrClosed.
	wait(ctx context.Context, past Mark) error

	// first is the number of the oldest segment that is kept. Older segments are removed
	// or about to be, and the ledgers already count the samples lost with them.
	first() int

	// segments lists the kept segments in ascending order. Numbers may have gaps.
	segments() []segment.Info

	// openSegment opens segment n for reading. The error is fs.ErrNotExist if there is
	// none. The file may be unlinked while it is open.
	openSegment(n int) (segmentFile, error)

	// isRefused reports whether the commit of that number failed, so that its bytes do not count if a file still has them.
	isRefused(number uint64) bool

	// broken reports whether the disk as a whole fails: a read error then says nothing about the place that was read.
	broken() bool

	// allSeries has the series that the appender and all cursors share.
	allSeries() *seriesMap
}

// segmentFile is one segment opened for reading.
type segmentFile interface {
	io.ReaderAt
	io.Closer
}
