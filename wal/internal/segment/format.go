package segment

import "hash/crc32"

// The page format is that of tsdb/wlog: a segment is a sequence of pages; a page is a
// sequence of fragments; a fragment is a header of 7 bytes (type and flags, length,
// checksum of the payload) and its payload. The rest of a page is zeros if no header
// fits, or when the segment is closed.
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

	// MaxRecord bounds an uncompressed record, in bytes. The writer never writes a longer
	// one; the reader treats one as damage before it allocates memory.
	MaxRecord = 16 << 20

	// maxExpansion bounds the ratio of a record to its snappy-compressed form: an element of
	// 3 bytes represents at most 64. So a wrong length, from damage or an attacker, costs at
	// most this many times the memory of the compressed bytes.
	maxExpansion = 22
)

// Castagnoli is the polynomial of all checksums in the log.
var Castagnoli = crc32.MakeTable(crc32.Castagnoli)
