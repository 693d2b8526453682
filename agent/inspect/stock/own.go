package stock

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
)

// The record types that only hwsagent writes. Prometheus' decoder calls them unknown.
const (
	typeHeader byte = 0xC8
	typeCommit byte = 0xC9
	typeFamily byte = 0xCA
	typeEnded  byte = 0xCB
)

// ID names a log or a segment.
type ID [16]byte

// String formats the ID as lower-case hex.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Header is the record that each segment begins with.
type Header struct {
	Version       uint8
	Log, Segment  ID
	Number        uint64
	CreatedAt     int64  // milliseconds since the epoch
	Commit, Total uint64 // of the last commit before the segment
	Found         uint64 // Total, less what a power cut took before
	PrevID        ID     // of the segment before, which ends at PrevEnd; zero: at the end of its file
	PrevEnd       int64  // bytes
}

// Commit is the record that ends a commit. What has none was never acknowledged.
type Commit struct {
	Number     uint64
	Records    uint64 // how many of its records precede this one
	CRC        uint32 // Castagnoli, over the uncompressed bytes of these, and the place of this record
	Samples    uint64 // floats and histograms in it
	Total      uint64 // of the log, up to and including it
	MinT, MaxT int64  // of the samples, milliseconds
}

// Family names the metric family of a series.
type Family struct {
	Ref  uint64
	Name string
}

var errShort = errors.New("record is shorter than its fields")

// fields reads the fields of a record one after the other.
type fields struct {
	b   []byte
	err error
}

func (f *fields) uvarint() uint64 {
	v, n := binary.Uvarint(f.b)
	return f.cut(n, v)
}

func (f *fields) varint() int64 {
	v, n := binary.Varint(f.b)
	return int64(f.cut(n, uint64(v)))
}

func (f *fields) cut(n int, v uint64) uint64 {
	if n <= 0 || f.err != nil {
		f.err = errShort
		return 0
	}
	f.b = f.b[n:]
	return v
}

func (f *fields) bytes(n uint64) []byte {
	if f.err != nil || n > uint64(len(f.b)) {
		f.err = errShort
		return nil
	}
	b := f.b[:n]
	f.b = f.b[n:]
	return b
}

func decodeHeader(body []byte) (h Header, err error) {
	f := fields{b: body}
	if v := f.bytes(1); v != nil {
		h.Version = v[0]
	}
	copy(h.Log[:], f.bytes(uint64(len(h.Log))))
	copy(h.Segment[:], f.bytes(uint64(len(h.Segment))))
	h.Number, h.CreatedAt = f.uvarint(), f.varint()
	h.Commit, h.Total, h.Found = f.uvarint(), f.uvarint(), f.uvarint()
	copy(h.PrevID[:], f.bytes(uint64(len(h.PrevID))))
	h.PrevEnd = f.varint()
	return h, f.err
}

func decodeCommit(body []byte) (c Commit, err error) {
	f := fields{b: body}
	c.Number, c.Records = f.uvarint(), f.uvarint()
	if crc := f.bytes(4); crc != nil {
		c.CRC = binary.BigEndian.Uint32(crc)
	}
	c.Samples, c.Total = f.uvarint(), f.uvarint()
	c.MinT, c.MaxT = f.varint(), f.varint()
	return c, f.err
}

func decodeFamilies(body []byte) (all []Family, err error) {
	f := fields{b: body}
	for len(f.b) > 0 && f.err == nil {
		ref := f.uvarint()
		if name := f.bytes(f.uvarint()); f.err == nil {
			all = append(all, Family{Ref: ref, Name: string(name)})
		}
	}
	return all, f.err
}
