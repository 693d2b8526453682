package segment

import "hash/crc32"

// The page format is that of tsdb/wlog: a segment is a row of pages; a page is a row
// of fragments; a fragment is a header of 7 bytes (type and flags, length, checksum
// of the payload) and its payload. What is left of a page when no header fits any
// more, or when a segment is closed, is zeros.
const (
	PageSize           = 32 * 1024
	FragmentHeaderSize = 7

	fragmentMask = 7 // the type in a fragment's first byte
	fragmentPad  = 0 // the rest of the page is zeros
	FragmentFull = 1 // a whole record
	FragmentHead = 2 // the first fragment of a record ("first" in wlog)
	FragmentBody = 3 // one in the middle ("middle")
	FragmentTail = 4 // the last one ("last")

	FlagSnappy = 1 << 3 // the record is snappy-compressed

	// MaxRecord bounds an uncompressed record, in bytes. The writer never makes a
	// longer one; the reader takes one for damage before it allocates anything.
	MaxRecord = 16 << 20

	// maxExpansion bounds how much longer than its compressed form a record can be that
	// snappy made: an element of 3 bytes stands for 64 at most. So a length that damage, or
	// somebody, has put there costs no more memory than the file has bytes, times this.
	maxExpansion = 22
)

// Castagnoli is the polynomial of all checksums in the log.
var Castagnoli = crc32.MakeTable(crc32.Castagnoli)
