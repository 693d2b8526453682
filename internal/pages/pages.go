// Package pages reads pages of metrics into reused memory, each within a limit. While many large pages are being read, it
// keeps them compressed.
package pages

import (
	"bytes"
	"errors"
	"io"
	"sync/atomic"

	"hwsagent/internal/spare"
)

const (
	// partSize is the size in bytes of the pieces in which a page is read that is larger than the one before.
	partSize = 64 << 10
	// MaxKept is the largest buffer in bytes that is kept even if its page failed or needs far less.
	MaxKept = 1 << 20
	// MaxClear is how many bytes of pages being read, beyond the first part of each, are kept uncompressed. One
	// or two large pages at a time cost no time; of many endless pages little is in memory.
	MaxClear = 4 << 20
)

// Buffers keeps the memory that pages are read into. Its zero value is ready to use, and it is safe for
// concurrent use.
type Buffers struct {
	whole    spare.Stack[bytes.Buffer] // a page is parsed from one piece
	parts    spare.Stack[[partSize]byte]
	packings spare.Stack[[packedSize]byte]
	// clear is the bytes that the pieces of all pages being read take: uncompressed parts, and one
	// more for each page being read.
	clear atomic.Int64
}

// Take returns an empty buffer.
func (p *Buffers) Take() *bytes.Buffer {
	if buf := p.whole.Take(); buf != nil {
		return buf
	}
	return new(bytes.Buffer)
}

// Give takes back the buffer of a page. A large buffer is not kept for small pages.
func (p *Buffers) Give(buf *bytes.Buffer, failed bool) {
	if buf.Cap() > MaxKept && (failed || buf.Cap() > 4*buf.Len()) {
		return
	}
	buf.Reset()
	p.whole.Put(buf)
}

// Read appends up to limit bytes of from to buf, and returns how many bytes came. If the count
// equals limit, or with an error, buf may hold only a part of them.
//
// expected is the likely size of the page in bytes, or 0 if unknown. Read makes room for it, up to
// MaxKept, once the first 64 KiB have come: an endpoint that answers and then hangs costs no more.
// A larger page costs one allocation of its size, and none if it fails: a buffer that doubles
// during an endless page leaves several times the limit to the garbage collector. While all pages
// being read hold more than MaxClear bytes of parts, further parts are kept compressed until their page ends.
func (p *Buffers) Read(buf *bytes.Buffer, from io.Reader, limit int64, expected int) (n int64, err error) {
	from = io.LimitReader(from, limit)
	n, err = fill(buf, from)
	if expected = min(expected, MaxKept); err == nil && expected > int(n)+partSize {
		part := p.part()
		var used int
		used, err = readPart(part, from)
		if err == nil {
			buf.Grow(expected - int(n))
		}
		buf.Write(part[:used])
		p.parts.Put(part)
		n += int64(used)
		if err == nil {
			var more int64
			more, err = fill(buf, from)
			n += more
		}
	}
	var rest queue
	defer rest.give(p)
	for err == nil {
		var used int
		used, err = readPart(rest.piece(p), from)
		n += int64(used)
		rest.add(p, used)
	}
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	if n < limit {
		return n, rest.writeTo(buf)
	}
	return n, nil
}

// part returns a piece of memory for a part of a page.
func (p *Buffers) part() *[partSize]byte {
	if part := p.parts.Take(); part != nil {
		return part
	}
	return new([partSize]byte)
}

// fill reads into the free room of buf. Without an error, buf is full afterwards.
func fill(buf *bytes.Buffer, from io.Reader) (n int64, err error) {
	for buf.Available() > 0 && err == nil {
		free := buf.AvailableBuffer()
		var m int
		m, err = from.Read(free[:buf.Available()])
		buf.Write(free[:m])
		n += int64(m)
	}
	return n, err
}

// readPart reads into part. Without an error, part is full afterwards.
func readPart(part *[partSize]byte, from io.Reader) (used int, err error) {
	for used < partSize && err == nil {
		var m int
		m, err = from.Read(part[used:])
		used += m
	}
	return used, err
}
