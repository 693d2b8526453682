// Package segment is the format of the log: pages, records, commits and the headers of segments.
//
// It opens no file. [Pages] lays records out in memory. [PageReader] finds the records of a file again and
// goes on behind damage. [Reader] puts records together to commits, and accepts a commit only if
// its checksum confirms the records and the place. [Scan] reads a segment to its end.
// [Catalogue] compares the headers of all segments: which log they belong to, where each ends, and
// which commits a later one has once more. The documentation of package
// wal describes the bytes.
//
// Nothing here is safe for concurrent use.
package segment
