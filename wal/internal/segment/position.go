package segment

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// Position is a place in the log: the end of a commit. Positions are ordered by segment,
// then by offset. The zero Position is before all others.
type Position struct {
	Segment int   `json:"segment"` // number of the segment file
	Offset  int64 `json:"offset"`  // bytes from the start of that file
}

// Before reports whether p lies before q.
func (p Position) Before(q Position) bool {
	if p.Segment != q.Segment {
		return p.Segment < q.Segment
	}
	return p.Offset < q.Offset
}

// String formats p as the segment's file name and the offset: 00000042:18734.
func (p Position) String() string { return fmt.Sprintf("%08d:%d", p.Segment, p.Offset) }

// ID is 16 random bytes that identify a log or a segment. The ID distinguishes a segment
// from an earlier file of the same number that a power cut removed.
type ID [16]byte

// String formats the ID as lower-case hex.
func (id ID) String() string { return fmt.Sprintf("%x", id[:]) }

// MarshalText makes the ID readable in JSON.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (id *ID) UnmarshalText(text []byte) error {
	var b ID
	if n, err := hex.Decode(b[:], text[:min(len(text), 2*len(b))]); err != nil || n != len(b) || len(text) != 2*len(b) {
		return fmt.Errorf("parse ID %q: it has 32 hex digits", text)
	}
	*id = b
	return nil
}

// Mark is a Position plus its log, segment ID, commit number and total. That suffices to
// find the position again after a restart, to detect that it no longer exists, and to
// compute ledgers without reading the log.
type Mark struct {
	Position

	// Log is the ID of the log that the mark belongs to.
	Log ID `json:"log"`

	// SegmentID is the ID of the segment file that Position.Segment named.
	SegmentID ID `json:"segment_id"`

	// Commit is the number of the commit that ends here. Numbers grow by at least
	// one with each commit over the whole life of a log, across restarts.
	//
	// Invariant: a is before b ⇔ a.Commit < b.Commit.
	Commit uint64 `json:"commit"`

	// Total is the number of samples (floats and histograms, including stale markers)
	// committed to the log since its creation, up to and including this commit.
	//
	// Invariant: a.Commit <= b.Commit ⇒ a.Total <= b.Total.
	Total uint64 `json:"total"`
}

// Later returns the mark with the greater commit number, with the greater total of the two.
func Later(m, n Mark) Mark {
	total := max(m.Total, n.Total)
	if n.Commit >= m.Commit {
		m = n
	}
	m.Total = total
	return m
}

// AppendMark appends the encoding of m to b.
func AppendMark(b []byte, m Mark) []byte {
	b = append(b, m.Log[:]...)
	b = append(b, m.SegmentID[:]...)
	b = binary.AppendVarint(b, int64(m.Segment))
	b = binary.AppendVarint(b, m.Offset)
	b = binary.AppendUvarint(b, m.Commit)
	return binary.AppendUvarint(b, m.Total)
}

// Mark reads the encoding of [AppendMark].
func (d *Decoder) Mark() Mark {
	var m Mark
	copy(m.Log[:], d.Bytes(uint64(len(m.Log))))
	copy(m.SegmentID[:], d.Bytes(uint64(len(m.SegmentID))))
	m.Segment = int(d.Varint())
	m.Offset = d.Varint()
	m.Commit = d.Uvarint()
	m.Total = d.Uvarint()
	return m
}
