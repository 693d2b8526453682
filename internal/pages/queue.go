package pages

import (
	"bytes"
	"fmt"

	"github.com/klauspost/compress/s2"
)

// queue holds the data of a page beyond the room of its buffer, in order.
type queue struct {
	parts []part
	bytes int             // of the page
	next  *[partSize]byte // for the next part; nil until it is needed
}

// part is a piece of a page.
type part struct {
	clear  *[partSize]byte // nil if compressed
	packed []byte
	used   int // bytes of the page
}

// packedSize is the largest output of s2 for a piece, in bytes: the bound of [s2.MaxEncodedLen].
const packedSize = partSize + 8

// piece returns memory to read the next part into.
func (q *queue) piece(p *Buffers) *[partSize]byte {
	if q.next == nil {
		p.clear.Add(partSize)
		q.next = p.part()
	}
	return q.next
}

// add appends the first bytes of the piece. A part that is not full is the last one and is released soon.
func (q *queue) add(p *Buffers, used int) {
	q.bytes += used
	if used == partSize && p.clear.Load() > MaxClear {
		if packed := p.pack(q.next[:]); packed != nil {
			q.parts = append(q.parts, part{packed: packed, used: used})
			return
		}
	}
	q.parts, q.next = append(q.parts, part{clear: q.next, used: used}), nil
}

// writeTo appends all parts to buf.
func (q *queue) writeTo(buf *bytes.Buffer) error {
	buf.Grow(q.bytes)
	for _, one := range q.parts {
		if one.clear != nil {
			buf.Write(one.clear[:one.used])
			continue
		}
		out, err := s2.Decode(buf.AvailableBuffer()[:one.used], one.packed)
		if err != nil {
			return fmt.Errorf("decompress a part of the page: %w", err)
		}
		buf.Write(out)
	}
	return nil
}

// give returns the memory of all parts.
func (q *queue) give(p *Buffers) {
	for _, one := range q.parts {
		if one.clear != nil {
			p.free(one.clear)
		}
	}
	if q.next != nil {
		p.free(q.next)
	}
}

// pack compresses a part of a page. It returns nil if the result is larger than half.
func (p *Buffers) pack(b []byte) []byte {
	packing := p.packings.Take()
	if packing == nil {
		packing = new([packedSize]byte)
	}
	defer p.packings.Put(packing)
	packed := s2.Encode(packing[:], b)
	if len(packed) > len(b)/2 {
		return nil
	}
	return bytes.Clone(packed)
}

// free takes back a piece of a queue.
func (p *Buffers) free(piece *[partSize]byte) {
	p.clear.Add(-partSize)
	p.parts.Put(piece)
}
