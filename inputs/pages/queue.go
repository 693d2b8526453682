package pages

import (
	"bytes"
	"fmt"

	"github.com/klauspost/compress/s2"
)

// queue is what came of a page beyond the room of its buffer, in order.
type queue struct {
	parts []part
	bytes int // of the page
}

// part is a piece of a page.
type part struct {
	clear  *[partSize]byte // nil: it is compressed
	packed []byte
	used   int // bytes of the page
}

// packedSize is the most that s2 makes of a piece, in bytes: its own bound, [s2.MaxEncodedLen].
const packedSize = partSize + 8

// add appends the first bytes of a piece of memory, which is the queue's from here on.
func (q *queue) add(p *Buffers, piece *[partSize]byte, used int) {
	q.bytes += used
	one := part{clear: piece, used: used}
	if p.clear.Add(partSize) > MaxClear {
		if one.packed = p.pack(piece[:used]); one.packed != nil {
			p.free(piece)
			one.clear = nil
		}
	}
	q.parts = append(q.parts, one)
}

// writeTo appends all to buf.
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

// give gives the memory of all parts back.
func (q *queue) give(p *Buffers) {
	for _, one := range q.parts {
		if one.clear != nil {
			p.free(one.clear)
		}
	}
}

// pack compresses a part of a page. It returns nil if that does not halve it.
func (p *Buffers) pack(b []byte) []byte {
	room, ok := p.rooms.Get().(*[packedSize]byte)
	if !ok {
		room = new([packedSize]byte)
	}
	defer p.rooms.Put(room)
	packed := s2.Encode(room[:], b)
	if len(packed) > len(b)/2 {
		return nil
	}
	return bytes.Clone(packed)
}

// free gives a piece of memory back that a queue had.
func (p *Buffers) free(piece *[partSize]byte) {
	p.clear.Add(-partSize)
	p.parts.Put(piece)
}
