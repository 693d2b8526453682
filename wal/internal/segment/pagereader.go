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

// PageReader reads the records of one segment and salvages what it can of a damaged
// one. Unlike the stock readers it goes on after damage: with the next fragment that
// starts a record and has the right checksum. It can stop at the end of what is
// written so far and go on when there is more.
//
// A checksum covers a fragment's payload, not its header, so damage may still yield
// a record that was never written. Whoever trusts a record checks it once more: see
// [Reader].
type PageReader struct {
	r io.ReaderAt

	// Limit is how many bytes of the file may be read; it only grows. final says that
	// nothing will be written beyond it.
	Limit int64
	Final bool

	page  []byte // the page at start, of which have bytes are read
	start int64
	have  int
	pos   int // of the next fragment in page

	// The record in progress: its payload so far, the flags of its first fragment, and
	// how many bytes of the file it takes, for the count of skipped ones.
	partial []byte
	flags   byte
	began   int64 // where it begins in the segment
	taken   int64

	// Skipped is how many bytes of the file were skipped as damage.
	Skipped int64
}

// Reset makes p read r from its beginning; the buffers are kept.
func (p *PageReader) Reset(r io.ReaderAt, limit int64, final bool) {
	if p.page == nil {
		p.page = make([]byte, PageSize)
	}
	p.r, p.Limit, p.Final = r, limit, final
	p.start, p.have, p.pos = 0, 0, 0
	p.partial, p.taken = p.partial[:0], 0
	p.Skipped = 0
}

// Offset is the end of what has been read: after next returned a record, the end of
// that record.
func (p *PageReader) Offset() int64 { return p.start + int64(p.pos) }

// Next appends the next record, uncompressed, to dst. ok is false at the limit; if
// the limit is not final, next may be called again when it has grown. After an error
// of the disk the call may be repeated, or the page given up with skipPage.
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

// fragmentState is what came of looking for a fragment.
type fragmentState uint8

const (
	intact  fragmentState = iota
	damaged               // something was skipped: look again
	atLimit               // nothing more, or not yet
)

// fragment looks at the fragment at pos. It moves pos only past padding and damage.
func (p *PageReader) fragment() (payload []byte, typ byte, s fragmentState, err error) {
	if ok, err := p.fill(p.pos + FragmentHeaderSize); err != nil {
		return nil, 0, atLimit, err // nothing has moved: the next try begins here
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
		// If the length is right, the next fragment follows. If not, what stands there
		// has no right checksum either, and so on to the end of the page.
		p.abandon()
		p.skip(end - p.pos)
		return nil, typ, damaged, nil
	}
	return payload, typ, intact, nil
}

// padding passes over the zeros up to the end of the page. Anything else among them
// is damage.
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
	p.abandon() // a record does not go on after padding
	p.turn()
	return damaged, nil
}

// end is reached when what is asked for lies beyond the limit. At a final one, what
// is left is a torn record, or zeros.
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

// fill reads the page up to n bytes at least; ok is false if the limit comes first.
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
		// Shorter than said: truncated meanwhile. At a final limit that is the end.
		return false, nil
	}
	return false, fmt.Errorf("read page at %d: %w", p.start, err)
}

// turn goes on to the next page.
func (p *PageReader) turn() {
	p.start += PageSize
	p.have, p.pos = 0, 0
}

// skip counts the next n bytes of the page as damage.
func (p *PageReader) skip(n int) {
	p.pos += n
	p.Skipped += int64(n)
}

// skipPage counts the rest of the page, as far as the limit, as damage and goes on
// to the next one.
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

// expand appends the uncompressed form of src to dst. It allocates no more than
// MaxRecord; ok is false if src is not what its flags say.
func (p *PageReader) expand(dst, src []byte) (out []byte, ok bool) {
	if p.flags&FlagSnappy == 0 {
		return append(dst, src...), true
	}
	n, err := s2.DecodedLen(src) // s2 reads it, and faster than the snappy package does
	if err != nil || n > min(MaxRecord, maxExpansion*len(src)) {
		return dst, false
	}
	dst = slices.Grow(dst, n)
	if _, err := s2.Decode(dst[len(dst):len(dst)+n], src); err != nil {
		return dst, false
	}
	return dst[:len(dst)+n], true
}

func AllZero(b []byte) bool {
	return len(b) == 0 || b[0] == 0 && bytes.Equal(b[:len(b)-1], b[1:])
}
