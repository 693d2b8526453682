package segment

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/golang/snappy"
)

// Pages lays out records in pages, in memory. It continues the page that contains the
// start offset, so Buf has exactly the bytes to write at that offset.
type Pages struct {
	Buf    []byte // the bytes from offset Start on
	Start  int64  // offset of Buf's first byte in the segment
	packed []byte // compression scratch
}

// Reset empties p, to build the bytes from offset start of a segment on.
func (p *Pages) Reset(start int64) {
	if cap(p.Buf) > keepBytes {
		p.Buf = nil
	}
	p.Buf, p.Start = p.Buf[:0], start
}

// keepBytes is the largest buffer that is kept for the next commit, in bytes.
const keepBytes = 4 << 20

// End is the offset in the segment after the bytes in Buf.
func (p *Pages) End() int64 { return p.Start + int64(len(p.Buf)) }

// Place is the offset at which the next record begins. It is on the next page if the rest of this one is too short
// for a fragment.
func (p *Pages) Place() int64 {
	end := p.End()
	if left := PageSize - end%PageSize; left < FragmentHeaderSize {
		end += left
	}
	return end
}

// Record appends one record, compressed if that makes it smaller.
func (p *Pages) Record(rec []byte) {
	var flags byte
	if n := snappy.MaxEncodedLen(len(rec)); cap(p.packed) < n {
		p.packed = make([]byte, n)
	}
	if packed := snappy.Encode(p.packed[:cap(p.packed)], rec); len(packed) < len(rec) {
		rec, flags = packed, FlagSnappy
	}
	p.Fragments(rec, flags)
}

// Fragments appends rec in as many fragments as it needs; an empty record needs one.
func (p *Pages) Fragments(rec []byte, flags byte) {
	for first := true; first || len(rec) > 0; first = false {
		left := PageSize - int(p.End()%PageSize)
		if left < FragmentHeaderSize {
			p.Buf = append(p.Buf, make([]byte, left)...)
			left = PageSize
		}
		part := rec[:min(len(rec), left-FragmentHeaderSize)]
		rec = rec[len(part):]

		kind := byte(FragmentBody)
		switch last := len(rec) == 0; {
		case first && last:
			kind = FragmentFull
		case first:
			kind = FragmentHead
		case last:
			kind = FragmentTail
		}
		p.Buf = append(p.Buf, kind|flags)
		p.Buf = binary.BigEndian.AppendUint16(p.Buf, uint16(len(part)))
		p.Buf = binary.BigEndian.AppendUint32(p.Buf, crc32.Checksum(part, Castagnoli))
		p.Buf = append(p.Buf, part...)
	}
}
