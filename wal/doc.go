// Package wal is the durable log between probes and remote-write targets.
//
// Every sample is committed here before anything else happens to it, and every
// target reads the log through a cursor of its own. The files are pages and
// records in the format of Prometheus' tsdb/wlog with the encodings of
// tsdb/record, so its stock readers open them; the writer, the salvaging reader
// and the savepoints are this package's, because the stock writer does not keep
// the promise below.
//
// # The promise
//
// A sample is acknowledged when [storage.AppenderTransaction.Commit] returns nil.
//
//   - A process kill at any moment loses no acknowledged sample.
//   - A power cut loses no acknowledged sample under `sync: always`; under
//     `sync: 1s` it loses at most the last second, newest first, and counts it.
//   - A full disk, a read-only remount or an I/O error fails the Commit that meets
//     it and nothing else; the log heals by itself when writes succeed again.
//   - A damaged page loses the commits that touch it, and what in the same segment
//     refers to series announced there; the loss is counted and nothing after it
//     is lost.
//   - The disk budget is never exceeded for long; what drop_oldest lets go is
//     written to each target's ledger before it is unlinked.
//
// # Segments
//
// A segment is self-contained. It begins with a header record (see [Header]) and
// announces a series, with its metadata, before that series' first use in it. So
// damage stays in one segment, truncation is unlinking the oldest file, and there
// is no checkpoint and no replay at start. Commits never span two segments.
//
// # Data flow
//
//	Appender.Commit ──> writer ──> segment files ──> Cursor.Next ──> (remotewrite)
//	                                                 Reader.Advance <── outcomes
package wal
