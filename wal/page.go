package wal

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/golang/snappy"
)

// pageWriter lays records out in pages, in memory. It appends to whatever page its
// start offset lies in, so what it has built is what has to be written there.
type pageWriter struct {
	buf    []byte // what follows start
	start  int64  // offset in the segment of buf's first byte
	packed []byte // compression scratch
}

// reset makes p empty, to build what follows offset start of a segment.
func (p *pageWriter) reset(start int64) {
	if cap(p.buf) > keepBytes {
		p.buf = nil
	}
	p.buf, p.start = p.buf[:0], start
}

// keepBytes is how large a buffer may be that is kept for the next commit.
const keepBytes = 4 << 20

// end is the offset in the segment after what has been built.
func (p *pageWriter) end() int64 { return p.start + int64(len(p.buf)) }

// record appends one record, compressed where that makes it smaller.
func (p *pageWriter) record(rec []byte) {
	var flags byte
	if n := snappy.MaxEncodedLen(len(rec)); cap(p.packed) < n {
		p.packed = make([]byte, n)
	}
	if packed := snappy.Encode(p.packed[:cap(p.packed)], rec); len(packed) < len(rec) {
		rec, flags = packed, flagSnappy
	}
	p.fragments(rec, flags)
}

// fragments appends rec in as many fragments as it needs; an empty one needs one.
func (p *pageWriter) fragments(rec []byte, flags byte) {
	for first := true; first || len(rec) > 0; first = false {
		left := pageSize - int(p.end()%pageSize)
		if left < fragmentHeaderSize {
			p.buf = append(p.buf, make([]byte, left)...)
			left = pageSize
		}
		part := rec[:min(len(rec), left-fragmentHeaderSize)]
		rec = rec[len(part):]

		kind := byte(fragmentBody)
		switch last := len(rec) == 0; {
		case first && last:
			kind = fragmentFull
		case first:
			kind = fragmentHead
		case last:
			kind = fragmentTail
		}
		p.buf = append(p.buf, kind|flags)
		p.buf = binary.BigEndian.AppendUint16(p.buf, uint16(len(part)))
		p.buf = binary.BigEndian.AppendUint32(p.buf, crc32.Checksum(part, castagnoli))
		p.buf = append(p.buf, part...)
	}
}
