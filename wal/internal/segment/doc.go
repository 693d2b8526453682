// Package segment is the format of the log: pages, records, commits and the headers of segments.
//
// It opens no files. [Pages] lays out records in memory. [PageReader] reads the records of a file and
// continues after damage. [Reader] assembles records into commits, and accepts a commit only if
// its checksum confirms the records and the place. [Scan] reads a segment to its end.
// [Catalogue] compares the headers of all segments to find the log that they belong to, and the end of
// each. The documentation of package wal describes the bytes.
//
// The types are not safe for concurrent use.
package segment
