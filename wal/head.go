package wal

import "context"

// tail is the writer's end of the log as cursors see it. *Log implements it.
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
}
