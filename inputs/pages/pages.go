// Package pages reads pages of metrics into memory that is used again.
package pages

import (
	"bytes"
	"errors"
	"io"
	"sync"
)

const (
	// partSize is the size in bytes of the pieces in which a page comes that is larger than the one before.
	partSize = 64 << 10
	// MaxKept is how many bytes a buffer may have that is kept although a page failed or needs far less.
	MaxKept = 1 << 20
)

// Buffers keeps the memory that pages are read into. Its zero value is ready to use, and it is safe for
// concurrent use.
type Buffers struct {
	whole sync.Pool // of *bytes.Buffer: a page is parsed from one piece
	parts sync.Pool // of *[partSize]byte
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
// that is limit, or with an error, buf has a part of them. A page that buf has no room for costs one
// allocation of its size, and none if it fails: a buffer that doubles while an endless page comes
// leaves several times the limit to the garbage collector.
func (p *Buffers) Read(buf *bytes.Buffer, from io.Reader, limit int64) (n int64, err error) {
	from = io.LimitReader(from, limit)
	for buf.Available() > 0 && err == nil {
		free := buf.AvailableBuffer()
		var m int
		m, err = from.Read(free[:buf.Available()])
		buf.Write(free[:m])
		n += int64(m)
	}
	var parts [][]byte
	defer func() {
		for _, part := range parts {
			p.parts.Put((*[partSize]byte)(part[:partSize]))
		}
	}()
	rest := 0
	for err == nil {
		part, ok := p.parts.Get().(*[partSize]byte)
		if !ok {
			part = new([partSize]byte)
		}
		used := 0
		for used < partSize && err == nil {
			var m int
			m, err = from.Read(part[used:])
			used += m
		}
		parts, rest = append(parts, part[:used]), rest+used
	}
	if n += int64(rest); !errors.Is(err, io.EOF) {
		return n, err
	}
	if n < limit {
		buf.Grow(rest)
		for _, part := range parts {
			buf.Write(part)
		}
	}
	return n, nil
}
