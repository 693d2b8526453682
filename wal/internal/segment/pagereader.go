package segment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/klauspost/compress/s2"
)

// PageReader reads the records of one segment. Unlike Prometheus' readers it continues
// after damage, with the next fragment that starts a record and has the right checksum.
// It can stop at the end of the data written so far and continue later.
//
// A checksum covers a fragment's payload but not its header, so damage may still yield
// a record that was never written. [Reader] therefore verifies the records of a commit
// again.
type PageReader struct {
	r io.ReaderAt

	// Limit is the number of bytes of the file that may be read; it only grows. Final means
	// that no bytes will be written beyond it.
	Limit int64
	Final bool

	page  []byte // the page at offset start; have bytes of it are read
	start int64
	have  int
	pos   int // of the next fragment in page

	// The record in progress: its payload so far, the flags of its first fragment, and
	// the bytes of the file that it takes, which count as skipped if it is abandoned.
	partial []byte
	flags   byte
	began   int64 // its offset in the segment
	taken   int64

	// Skipped is the number of bytes of the file skipped as damage.
	Skipped int64
}

// Reset makes p read r from its beginning. It keeps the buffers.
func (p *PageReader) Reset(r io.ReaderAt, limit int64, final bool) {
	if p.page == nil {
		p.page = make([]byte, PageSize)
	}
	p.r, p.Limit, p.Final = r, limit, final
	p.start, p.have, p.pos = 0, 0, 0
	p.partial, p.taken = p.partial[:0], 0
	p.Skipped = 0
}

// Offset is the end of the bytes processed: after Next has returned a record, the end of
// that record.
func (p *PageReader) Offset() int64 { return p.start + int64(p.pos) }

// Next appends the next record, uncompressed, to dst. ok is false at the limit; if the
// limit is not final, the caller may call Next again after raising it. After a disk error
// the caller may retry, or skip the page with skipPage.
func (p *PageReader) Next(dst []byte) (out []byte, ok bool, err error) {
	for {
		if p.pos+FragmentHeaderSize > PageSize {
			p.turn()
			continue
		}
		payload, typ, state, err := p.fragment()
		if err != nil {
			return dst, false, err
		}
		switch state {
		case atLimit:
			return dst, false, nil
		case damaged:
			continue
		}
		size := FragmentHeaderSize + len(payload)
		first := typ == FragmentFull || typ == FragmentHead
		switch {
		case first:
			p.abandon() // a record in progress that never ended
			p.flags, p.began = p.page[p.pos]&^fragmentMask, p.Offset()
		case p.taken == 0: // the rest of a record whose beginning is lost
			p.skip(size)
			continue
		}
		if len(p.partial)+len(payload) > MaxRecord {
			p.abandon()
			p.skip(size)
			continue
		}
		p.pos += size
		p.taken += int64(size)
		if typ == FragmentFull {
			if out, ok := p.expand(dst, payload); ok {
				p.taken = 0
				return out, true, nil
			}
			p.abandon()
			continue
		}
		p.partial = append(p.partial, payload...)
		if typ != FragmentTail {
			continue
		}
		if out, ok := p.expand(dst, p.partial); ok {
			p.partial, p.taken = p.partial[:0], 0
			return out, true, nil
		}
		p.abandon()
	}
}

// fragmentState is the result of looking for a fragment.
type fragmentState uint8

const (
	intact  fragmentState = iota
	damaged               // skipped bytes: look again
	atLimit               // no more fragments, at least not yet
)

// fragment examines the fragment at pos. It moves pos only past padding and damage.
func (p *PageReader) fragment() (payload []byte, typ byte, s fragmentState, err error) {
	if ok, err := p.fill(p.pos + FragmentHeaderSize); err != nil {
		return nil, 0, atLimit, err // pos is unchanged: a retry begins here
	} else if !ok {
		return nil, 0, p.end(), nil
	}
	head := p.page[p.pos : p.pos+FragmentHeaderSize]
	typ = head[0] & fragmentMask
	if typ == fragmentPad {
		s, err = p.padding()
		return nil, typ, s, err
	}
	length := int(binary.BigEndian.Uint16(head[1:]))
	end := p.pos + FragmentHeaderSize + length
	if typ > FragmentTail || end > PageSize {
		p.skipPage()
		return nil, typ, damaged, nil
	}
	if ok, err := p.fill(end); err != nil {
		return nil, 0, atLimit, err
	} else if !ok {
		return nil, 0, p.end(), nil
	}
	payload = p.page[p.pos+FragmentHeaderSize : end]
	if crc32.Checksum(payload, Castagnoli) != binary.BigEndian.Uint32(head[3:]) {
		// If the length is right, the next fragment follows. If not, the checksum of the bytes
		// there does not match either, and so on to the end of the page.
		p.abandon()
		p.skip(end - p.pos)
		return nil, typ, damaged, nil
	}
	return payload, typ, intact, nil
}

// padding skips the zeros up to the end of the page. Other bytes among them are damage.
func (p *PageReader) padding() (fragmentState, error) {
	end := int(min(PageSize, p.Limit-p.start))
	if _, err := p.fill(end); err != nil {
		return atLimit, err
	}
	if !AllZero(p.page[p.pos:p.have]) {
		p.skipPage()
		return damaged, nil
	}
	if p.have < PageSize {
		return p.end(), nil
	}
	p.abandon() // a record does not continue after padding
	p.turn()
	return damaged, nil
}

// end handles a fragment that would extend beyond the limit. At a final limit, the rest is
// a torn record, or zeros.
func (p *PageReader) end() fragmentState {
	if p.Final {
		p.abandon()
		if rest := p.page[min(p.pos, p.have):p.have]; !AllZero(rest) {
			p.Skipped += int64(len(rest))
		}
		p.pos = max(p.pos, p.have)
		p.Limit = min(p.Limit, p.Offset())
	}
	return atLimit
}

// fill reads at least n bytes of the page; ok is false if the limit comes first.
func (p *PageReader) fill(n int) (ok bool, err error) {
	if p.have >= n {
		return true, nil
	}
	end := int(min(PageSize, p.Limit-p.start))
	if end <= p.have {
		return false, nil
	}
	m, err := p.r.ReadAt(p.page[p.have:end], p.start+int64(p.have))
	p.have += m
	if p.have >= n {
		return true, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		// The file is shorter than the limit, because it was truncated meanwhile. At a final limit this is the end.
		return false, nil
	}
	return false, fmt.Errorf("read page at %d: %w", p.start, err)
}

// turn moves to the next page.
func (p *PageReader) turn() {
	p.start += PageSize
	p.have, p.pos = 0, 0
}

// skip counts the next n bytes of the page as damage.
func (p *PageReader) skip(n int) {
	p.pos += n
	p.Skipped += int64(n)
}

// skipPage counts the rest of the page, up to the limit, as damage and moves to the next
// page.
func (p *PageReader) skipPage() {
	p.abandon()
	if rest := min(PageSize, p.Limit-p.start) - int64(p.pos); rest > 0 {
		p.Skipped += rest
	}
	p.turn()
}

// abandon counts the record in progress as damage.
func (p *PageReader) abandon() {
	p.Skipped += p.taken
	p.partial, p.taken = p.partial[:0], 0
}

// expand appends the uncompressed form of src to dst. It allocates at most MaxRecord
// bytes; ok is false if src does not match its flags.
func (p *PageReader) expand(dst, src []byte) (out []byte, ok bool) {
	if p.flags&FlagSnappy == 0 {
		return append(dst, src...), true
	}
	n, err := s2.DecodedLen(src) // s2 reads snappy, faster than the snappy package
	if err != nil || n > min(MaxRecord, maxExpansion*len(src)) {
		return dst, false
	}
	dst = slices.Grow(dst, n)
	if _, err := s2.Decode(dst[len(dst):len(dst)+n], src); err != nil {
		return dst, false
	}
	return dst[:len(dst)+n], true
}

// AllZero reports whether b has no byte other than 0.
func AllZero(b []byte) bool {
	return len(b) == 0 || b[0] == 0 && bytes.Equal(b[:len(b)-1], b[1:])
}
