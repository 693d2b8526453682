package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Record types of this package. tsdb/record numbers its types upwards from 1; Prometheus'
// readers report these as unknown and skip them.
const (
	TypeHeader byte = 0xC8
	TypeCommit byte = 0xC9
	TypeFamily byte = 0xCA
	TypeEnded  byte = 0xCB
)

// Version is the version in a segment's header. Readers refuse all others.
const Version = 3

// Header is the first record of every segment.
type Header struct {
	Version   uint8
	Log       ID    // the log that the segment belongs to
	Segment   ID    // this segment
	Number    int   // the segment's number, as in its file name
	CreatedAt int64 // milliseconds since the epoch

	// Commit and Total are those of the last commit before this segment. Its first commit
	// has a number greater than Commit.
	Commit uint64
	Total  uint64

	// Found is the total without samples lost to a power cut, if this is the first segment
	// after the log was opened, or one that was begun before such a header was durable and
	// before more samples came; otherwise Found = Total. Total - Found samples had been
	// acknowledged and did not survive a power cut (savepoints or headers count them, but
	// the files do not have them).
	//
	// Invariant: Found <= Total.
	Found uint64

	// PrevID and PrevEnd seal the segment whose number is one less. If PrevID is zero, an
	// earlier process sealed that segment, and all its readable commits count. Otherwise
	// the segment must have the ID PrevID and ends at offset PrevEnd. Commits beyond, or all
	// commits of a segment with another ID, failed and could not be truncated. They were
	// never acknowledged, totals do not include them, and readers must not deliver them.
	// (An open log applies this to the segment ends that cursors see.)
	PrevID  ID
	PrevEnd int64

	// DurableCommit and DurableTotal are those of the last commit known to be durable when the
	// segment began: Commit and Total, unless the previous segment was still being synced.
	//
	// Invariant: DurableCommit <= Commit and DurableTotal <= Total.
	DurableCommit uint64
	DurableTotal  uint64
}

// of reports whether h was read, and belongs to a segment of that log.
func (h *Header) of(log ID) bool { return h.Version != 0 && h.Log == log }

// Commit is the record that ends each commit. A commit without it is never delivered. A
// commit may have no records and no samples: the log writes an empty one when it is opened
// after a power cut has lost acknowledged samples, so that the total of the head includes
// them.
type Commit struct {
	Number  uint64
	Records uint32 // number of the commit's records before this one
	CRC     uint32 // Castagnoli, over the uncompressed bytes of these records, in order, and of AppendPlace
	Samples uint64 // floats and histograms in this commit
	Total   uint64 // running total including this commit
	MinT    int64  // of the samples, milliseconds
	MaxT    int64
}

// Errors of decoding.
var (
	// ErrShort means that a record ends before its last field.
	ErrShort = errors.New("record is shorter than its fields")

	// ErrOtherFormat means that a record is of a version that this build does not read.
	ErrOtherFormat = errors.New("it is of another format")
)

// AppendPlace appends the place of a commit record: the number of the segment, and the offset at
// which the record begins, 8 bytes each. A commit's checksum covers them, so a page that was
// moved to another offset or segment file does not verify.
func AppendPlace(b []byte, segment int, offset int64) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(segment))
	return binary.BigEndian.AppendUint64(b, uint64(offset))
}

// Before is the mark before the segment with that header. Samples that a power cut took right
// before the segment are after this mark.
func (h *Header) Before() Mark {
	return Mark{
		Position:  Position{Segment: h.Number},
		Log:       h.Log,
		SegmentID: h.Segment,
		Commit:    h.Commit,
		Total:     h.Found,
	}
}

// AppendHeader appends the encoding of h to b.
func AppendHeader(b []byte, h Header) []byte {
	b = append(b, TypeHeader, h.Version)
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

// DecodeHeader decodes a header record including its type byte. The error for another format
// version includes the remedy.
func DecodeHeader(rec []byte) (Header, error) {
	var h Header
	if len(rec) < 2+len(h.Log)+len(h.Segment) || rec[0] != TypeHeader {
		return h, fmt.Errorf("decode segment header: %w", ErrShort)
	}
	h.Version = rec[1]
	switch {
	case h.Version < Version:
		return h, fmt.Errorf("%w, the earlier version %d, which this build does not read; nothing was changed: "+
			"run the hwsagent that wrote it until no target has anything pending, stop it, and start this one with another --storage.path", ErrOtherFormat, h.Version)
	case h.Version != Version:
		return h, fmt.Errorf("%w, version %d, and this build reads %d: use a newer hwsagent or another --storage.path", ErrOtherFormat, h.Version, Version)
	}
	n := 2
	n += copy(h.Log[:], rec[n:])
	n += copy(h.Segment[:], rec[n:])
	d := Decoder{B: rec[n:]}
	h.Number = int(d.Uvarint())
	h.CreatedAt = d.Varint()
	h.Commit = d.Uvarint()
	h.Total = d.Uvarint()
	h.Found = d.Uvarint()
	copy(h.PrevID[:], d.Bytes(uint64(len(h.PrevID))))
	h.PrevEnd = d.Varint()
	h.DurableCommit, h.DurableTotal = d.Uvarint(), d.Uvarint()
	if d.Err != nil {
		return h, fmt.Errorf("decode segment header: %w", d.Err)
	}
	return h, nil
}

// AppendCommit appends the encoding of c to b.
func AppendCommit(b []byte, c Commit) []byte {
	b = append(b, TypeCommit)
	b = binary.AppendUvarint(b, c.Number)
	b = binary.AppendUvarint(b, uint64(c.Records))
	b = binary.BigEndian.AppendUint32(b, c.CRC)
	b = binary.AppendUvarint(b, c.Samples)
	b = binary.AppendUvarint(b, c.Total)
	b = binary.AppendVarint(b, c.MinT)
	return binary.AppendVarint(b, c.MaxT)
}

// DecodeCommit decodes a commit record including its type byte.
func DecodeCommit(rec []byte) (Commit, error) {
	var c Commit
	if len(rec) == 0 || rec[0] != TypeCommit {
		return c, fmt.Errorf("decode commit: %w", ErrShort)
	}
	d := Decoder{B: rec[1:]}
	c.Number = d.Uvarint()
	c.Records = uint32(d.Uvarint())
	c.CRC = d.be32()
	c.Samples = d.Uvarint()
	c.Total = d.Uvarint()
	c.MinT = d.Varint()
	c.MaxT = d.Varint()
	if d.Err != nil {
		return c, fmt.Errorf("decode commit: %w", d.Err)
	}
	return c, nil
}

// Family names the metric family of a series whose own name differs from it
// (x_bucket, x_sum and x_count of x); it follows the series' announcement.
type Family struct {
	Ref  uint64
	Name string
}

// AppendFamilies appends the encoding of fs to b.
func AppendFamilies(b []byte, fs []Family) []byte {
	b = append(b, TypeFamily)
	for _, f := range fs {
		b = binary.AppendUvarint(b, f.Ref)
		b = binary.AppendUvarint(b, uint64(len(f.Name)))
		b = append(b, f.Name...)
	}
	return b
}

// Decoder reads fields from the front of B. The first short field sets Err, and all
// further fields are zero.
type Decoder struct {
	B   []byte
	Err error
}

// Uvarint reads an unsigned number as [binary.AppendUvarint] writes it.
func (d *Decoder) Uvarint() uint64 {
	v, n := binary.Uvarint(d.B)
	return d.skip(n, v)
}

// Varint reads a signed number as [binary.AppendVarint] writes it.
func (d *Decoder) Varint() int64 {
	v, n := binary.Varint(d.B)
	return int64(d.skip(n, uint64(v)))
}

func (d *Decoder) be32() uint32 {
	b := d.Bytes(4)
	if d.Err != nil {
		return 0
	}
	return binary.BigEndian.Uint32(b)
}

func (d *Decoder) skip(n int, v uint64) uint64 {
	if n <= 0 || d.Err != nil {
		d.Err = ErrShort
		return 0
	}
	d.B = d.B[n:]
	return v
}

// Bytes reads n bytes. They share memory with B.
func (d *Decoder) Bytes(n uint64) []byte {
	if d.Err != nil || n > uint64(len(d.B)) {
		d.Err = ErrShort
		return nil
	}
	b := d.B[:n]
	d.B = d.B[n:]
	return b
}

// Byte reads one byte.
func (d *Decoder) Byte() byte {
	if b := d.Bytes(1); d.Err == nil {
		return b[0]
	}
	return 0
}

// Be64 reads 8 bytes, big-endian.
func (d *Decoder) Be64() uint64 {
	hi := uint64(d.be32())
	return hi<<32 | uint64(d.be32())
}

// Float reads the 8 bytes of a float, big-endian.
func (d *Decoder) Float() float64 { return math.Float64frombits(d.Be64()) }

// Text reads a length and as many bytes.
func (d *Decoder) Text() string { return string(d.Bytes(d.Uvarint())) }

// End returns the error of decoding; bytes left over are an error too.
func (d *Decoder) End() error {
	if d.Err == nil && len(d.B) > 0 {
		return errors.New("bytes left over")
	}
	return d.Err
}
