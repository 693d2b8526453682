package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Record types of our own. tsdb/record numbers its types upwards from 1; stock
// readers report these as unknown and skip them.
const (
	typeHeader byte = 0xC8
	typeCommit byte = 0xC9
	typeFamily byte = 0xCA
)

// formatVersion is the version in a segment's header. A reader refuses a newer one.
const formatVersion = 1

// Header is the first record of every segment.
type Header struct {
	Version   uint8
	Log       ID    // the log that the segment belongs to
	Segment   ID    // this segment
	Number    int   // the segment's number, as in its file name
	CreatedAt int64 // milliseconds since the epoch

	// Commit and Total are those of the last commit before this segment. The first
	// commit in it has a number greater than Commit.
	Commit uint64
	Total  uint64

	// Found is the total that could be read back from the disk when the log was
	// opened, if this is the first segment after that; otherwise Found = Total.
	// Total - Found samples had been acknowledged and did not survive a power cut
	// (a savepoint knew of them, the files do not have them).
	//
	// Invariant: Found <= Total.
	Found uint64

	// PrevID and PrevEnd seal the segment whose number is one less. A zero PrevID says
	// nothing: that segment was sealed by an earlier process, and all that can be read
	// of it counts. Otherwise the segment's ID must be PrevID and it ends at offset
	// PrevEnd: what can be read beyond, or all of it if its ID is another, are commits
	// that failed and could not be cut off. They were never acknowledged, the totals
	// do not contain them, and a reader must not deliver them. (An open log applies
	// this to the sizes that cursors get to see.)
	PrevID  ID
	PrevEnd int64

	// DurableCommit and DurableTotal are those of the last commit that was known to survive a
	// power cut when the segment began: Commit and Total, unless the segment before was still
	// being synced.
	//
	// Invariant: DurableCommit <= Commit and DurableTotal <= Total.
	DurableCommit uint64
	DurableTotal  uint64
}

// names reports whether h is the header of that segment of that log. It is not when it is
// unreadable, or when the file, or its first page, came from elsewhere: then it says
// nothing about what precedes the file.
func (h *Header) names(log ID, segment int) bool {
	return h.Version != 0 && h.Log == log && h.Number == segment
}

// commitRecord ends each commit. A commit without it is never delivered. A commit
// of no records and no samples is legal: the log writes one when it is opened after
// a power cut took samples that a savepoint knew of, so that there is a commit at
// the head whose total contains them.
type commitRecord struct {
	Number  uint64
	Records uint32 // how many records of the commit precede this one
	CRC     uint32 // Castagnoli, over the uncompressed bytes of these records, in order
	Samples uint64 // floats and histograms in this commit
	Total   uint64 // running total including this commit
	MinT    int64  // of the samples, milliseconds
	MaxT    int64
}

var (
	errShortRecord = errors.New("record is shorter than its fields")
	errNewerFormat = errors.New("a newer format")
)

// appendHeader appends the encoding of h to b.
func appendHeader(b []byte, h Header) []byte {
	b = append(b, typeHeader, h.Version)
	b = append(b, h.Log[:]...)
	b = append(b, h.Segment[:]...)
	b = binary.AppendUvarint(b, uint64(h.Number))
	b = binary.AppendVarint(b, h.CreatedAt)
	b = binary.AppendUvarint(b, h.Commit)
	b = binary.AppendUvarint(b, h.Total)
	b = binary.AppendUvarint(b, h.Found)
	b = append(b, h.PrevID[:]...)
	b = binary.AppendVarint(b, h.PrevEnd)
	b = binary.AppendUvarint(b, h.DurableCommit)
	return binary.AppendUvarint(b, h.DurableTotal)
}

// decodeHeader decodes a header record, its type byte included. A newer format
// version is an error that says so.
func decodeHeader(rec []byte) (Header, error) {
	var h Header
	if len(rec) < 2+len(h.Log)+len(h.Segment) || rec[0] != typeHeader {
		return h, fmt.Errorf("decode segment header: %w", errShortRecord)
	}
	h.Version = rec[1]
	if h.Version == 0 || h.Version > formatVersion {
		return h, fmt.Errorf("segment has %w: version %d, this build reads up to %d: use a newer hwsagent or another --storage.path", errNewerFormat, h.Version, formatVersion)
	}
	n := 2
	n += copy(h.Log[:], rec[n:])
	n += copy(h.Segment[:], rec[n:])
	d := decoder{b: rec[n:]}
	h.Number = int(d.uvarint())
	h.CreatedAt = d.varint()
	h.Commit = d.uvarint()
	h.Total = d.uvarint()
	h.Found = d.uvarint()
	copy(h.PrevID[:], d.bytes(uint64(len(h.PrevID))))
	h.PrevEnd = d.varint()
	h.DurableCommit, h.DurableTotal = h.Commit, h.Total
	if len(d.b) > 0 { // not in segments of the first builds, which began none before that was so
		h.DurableCommit, h.DurableTotal = d.uvarint(), d.uvarint()
	}
	if d.err != nil {
		return h, fmt.Errorf("decode segment header: %w", d.err)
	}
	return h, nil
}

// appendCommit appends the encoding of c to b.
func appendCommit(b []byte, c commitRecord) []byte {
	b = append(b, typeCommit)
	b = binary.AppendUvarint(b, c.Number)
	b = binary.AppendUvarint(b, uint64(c.Records))
	b = binary.BigEndian.AppendUint32(b, c.CRC)
	b = binary.AppendUvarint(b, c.Samples)
	b = binary.AppendUvarint(b, c.Total)
	b = binary.AppendVarint(b, c.MinT)
	return binary.AppendVarint(b, c.MaxT)
}

// decodeCommit decodes a commit record, its type byte included.
func decodeCommit(rec []byte) (commitRecord, error) {
	var c commitRecord
	if len(rec) == 0 || rec[0] != typeCommit {
		return c, fmt.Errorf("decode commit: %w", errShortRecord)
	}
	d := decoder{b: rec[1:]}
	c.Number = d.uvarint()
	c.Records = uint32(d.uvarint())
	c.CRC = d.be32()
	c.Samples = d.uvarint()
	c.Total = d.uvarint()
	c.MinT = d.varint()
	c.MaxT = d.varint()
	if d.err != nil {
		return c, fmt.Errorf("decode commit: %w", d.err)
	}
	return c, nil
}

// family names the metric family of a series whose own name differs from it
// (x_bucket, x_sum and x_count of x); it follows the series' announcement.
type family struct {
	Ref  uint64
	Name string
}

// appendFamilies appends the encoding of fs to b.
func appendFamilies(b []byte, fs []family) []byte {
	b = append(b, typeFamily)
	for _, f := range fs {
		b = binary.AppendUvarint(b, f.Ref)
		b = binary.AppendUvarint(b, uint64(len(f.Name)))
		b = append(b, f.Name...)
	}
	return b
}

// decoder reads fields off the front of b; after the first short field err is set
// and every further field is zero.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	return d.skip(n, v)
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	return int64(d.skip(n, uint64(v)))
}

func (d *decoder) be32() uint32 {
	b := d.bytes(4)
	if d.err != nil {
		return 0
	}
	return binary.BigEndian.Uint32(b)
}

func (d *decoder) skip(n int, v uint64) uint64 {
	if n <= 0 || d.err != nil {
		d.err = errShortRecord
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) bytes(n uint64) []byte {
	if d.err != nil || n > uint64(len(d.b)) {
		d.err = errShortRecord
		return nil
	}
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}
