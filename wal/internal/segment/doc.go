// Package segment is the format of the log: pages, records, commits and the headers of segments.
//
// It is pure. [Pages] lays records out in memory; [PageReader] finds the records of a file again and
// goes on behind damage; [Reader] puts records together to commits, and believes a commit only where
// its checksum confirms the records and the place; [Scan] reads a segment to its end; and
// [Catalogue] works out what the headers of all segments say of each other: which log they are
// of, where each ends, and which commits a later one has once more. The documentation of package
// wal describes the bytes.
//
// Nothing here is safe for concurrent use.
package segment
