// Package pages reads pages of metrics into memory that is used again.
package pages

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

const (
	// partSize is the size in bytes of the pieces in which a page comes that is larger than the one before.
	partSize = 64 << 10
	// MaxKept is how many bytes a buffer may have that is kept although a page failed or needs far less.
	MaxKept = 1 << 20
	// MaxClear is how many bytes of pages under way, beyond the first of each, are kept uncompressed. One
	// or two large pages at a time cost no time for it; of many endless ones little is in memory.
	MaxClear = 4 << 20
)

// Buffers keeps the memory that pages are read into. Its zero value is ready to use, and it is safe for
// concurrent use.
type Buffers struct {
	whole sync.Pool // of *bytes.Buffer: a page is parsed from one piece
	parts sync.Pool // of *[partSize]byte
	rooms sync.Pool // of *[packedSize]byte
	// clear is how many bytes the pieces of all pages under way take: parts that are kept as they came, and one
	// more of each page that is being read.
	clear atomic.Int64
}

// Take returns an empty buffer.
func (p *Buffers) Take() *bytes.Buffer {
	if buf, ok := p.whole.Get().(*bytes.Buffer); ok {
		return buf
	}
	return new(bytes.Buffer)
}

// Give takes back the buffer of a page. One that is large is not kept for pages that are small.
func (p *Buffers) Give(buf *bytes.Buffer, failed bool) {
	if buf.Cap() > MaxKept && (failed || buf.Cap() > 4*buf.Len()) {
		return
	}
	buf.Reset()
	p.whole.Put(buf)
}

// Read appends to buf what from has, but no more than limit bytes, and returns how many bytes came. If
// that is limit, or with an error, buf has a part of them.
//
// Expected is how large the page is likely to be, in bytes; 0 if that is not known. Room for it, up to
// MaxKept, is made when the first 64 KiB have come: an endpoint that answers and then hangs takes no more.
// A page that is larger costs one allocation of its size, and none if it fails: a buffer that doubles
// while an endless page comes leaves several times the limit to the garbage collector. What comes while
// all pages under way have more than MaxClear bytes of such parts is kept compressed until its page ends.
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
	if part, ok := p.parts.Get().(*[partSize]byte); ok {
		return part
	}
	return new([partSize]byte)
}

// fill reads into the room that buf has. Without an error it is full.
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

// readPart reads into part. Without an error it is full.
func readPart(part *[partSize]byte, from io.Reader) (used int, err error) {
	for used < partSize && err == nil {
		var m int
		m, err = from.Read(part[used:])
		used += m
	}
	return used, err
}
