package segment

import (
	"errors"
	"hash/crc32"
	"io"
)

// MaxCommit bounds the uncompressed records of a commit, in bytes: a reader holds them
// until it comes to the commit record. The encoder refuses to write a longer commit, and a
// reader takes it for damage.
const MaxCommit = 256 << 20

// Reader assembles the commits of one segment and verifies them: record count,
// and checksum over the uncompressed bytes and the place.
type Reader struct {
	pages  PageReader
	number int // of the segment, by the name of its file

	// buf holds the records read since the last commit record, ends where each ends.
	buf  []byte
	ends []int

	// The results of the last call of Next, valid until the following call. Header is valid after
	// FoundHeader; Commit, and its records Good, after FoundCommit. Debris are records of no commit
	// that verifies; a reader may still learn the series that they announce.
	Header Header
	Commit Commit
	Good   Records
	Debris Records

	consumed bool // buf was handed out and starts anew
	usual    int  // bytes of buf that a large one of the recent commits took
	broken   int  // commit records that did not verify
}

// Records are consecutive records in one buffer.
type Records struct {
	buf   []byte
	start int
	ends  []int
}

// Each calls f with each record.
func (rs Records) Each(f func(rec []byte)) {
	from := rs.start
	for _, end := range rs.ends {
		f(rs.buf[from:end])
		from = end
	}
}

// Found says what Next came upon.
type Found uint8

const (
	FoundNothing Found = iota // at the limit
	FoundHeader
	FoundCommit
	FoundDebris // a commit that does not verify, or records at a final limit
)

// Reset makes c read the segment of that number in r from its beginning; the buffers are kept.
func (c *Reader) Reset(r io.ReaderAt, number int, limit int64, final bool) {
	c.number = number
	c.pages.Reset(r, limit, final)
	c.buf, c.ends, c.consumed = c.buf[:0], c.ends[:0], false
	c.Header, c.broken = Header{}, 0
}

// Next reads up to the next header or commit record. The error is the disk's (the
// call may be repeated) or says that the segment is of another format.
func (c *Reader) Next() (Found, error) {
	if c.consumed {
		c.shrink()
		c.buf, c.ends, c.consumed = c.buf[:0], c.ends[:0], false
	}
	c.Good, c.Debris = Records{}, Records{}
	for {
		from := len(c.buf)
		buf, ok, err := c.pages.Next(c.buf)
		if err != nil {
			return FoundNothing, err
		}
		if !ok {
			if !c.pages.Final || len(c.ends) == 0 {
				return FoundNothing, nil
			}
			c.consumed = true
			c.Debris = Records{buf: c.buf, ends: c.ends}
			return FoundDebris, nil
		}
		c.buf = buf
		rec := buf[from:]
		if len(rec) == 0 {
			continue
		}
		switch rec[0] {
		case TypeHeader:
			c.buf = buf[:from]
			if c.Header.Version != 0 {
				continue // a page that was written twice
			}
			h, err := DecodeHeader(rec)
			if err != nil {
				return FoundNothing, err
			}
			if h.Number != c.number {
				continue // a page of another segment
			}
			c.Header = h
			return FoundHeader, nil
		case TypeCommit:
			c.buf, c.consumed = buf[:from], true
			return c.verify(rec), nil
		}
		if len(c.buf) > MaxCommit {
			c.buf, c.ends = c.buf[:0], c.ends[:0]
			continue
		}
		c.ends = append(c.ends, len(c.buf))
	}
}

// maxKept is the capacity in bytes up to which buf is kept although commits need far less.
const maxKept = 64 << 10

// shrink lets go of buf if recent commits needed far less: a commit that announces many series is large, and each
// target has a reader.
func (c *Reader) shrink() {
	c.usual = max(len(c.buf), c.usual-c.usual/8)
	if cap(c.buf) > max(maxKept, 4*c.usual) {
		c.buf = nil
	}
}

// verify checks the records read against the commit record rec. After damage, the
// last of them may be a whole commit and those before it the rest of another.
func (c *Reader) verify(rec []byte) Found {
	c.Debris = Records{buf: c.buf, ends: c.ends}
	commit, err := DecodeCommit(rec)
	split := len(c.ends) - int(commit.Records)
	if err != nil || split < 0 || commit.Samples > commit.Total {
		c.broken++
		return FoundDebris
	}
	from := 0
	if split > 0 {
		from = c.ends[split-1]
	}
	n := len(c.buf)
	c.buf = AppendPlace(c.buf, c.number, c.pages.began)
	crc := crc32.Checksum(c.buf[from:], Castagnoli)
	if c.buf = c.buf[:n]; crc != commit.CRC {
		c.broken++
		return FoundDebris
	}
	c.Commit = commit
	c.Good = Records{buf: c.buf, start: from, ends: c.ends[split:]}
	c.Debris.ends = c.ends[:split]
	return FoundCommit
}

// Offset is the end of what Next returned last.
func (c *Reader) Offset() int64 { return c.pages.Offset() }

// Skipped is how many bytes of the file were skipped as damage.
func (c *Reader) Skipped() int64 { return c.pages.Skipped }

// IsFinal reports whether nothing will be written beyond the limit.
func (c *Reader) IsFinal() bool { return c.pages.Final }

// Extend raises the limit to so many bytes, if that is more than before. final says that nothing will be written
// beyond.
func (c *Reader) Extend(limit int64, final bool) {
	c.pages.Limit, c.pages.Final = max(c.pages.Limit, limit), final
}

// SkipPage gives up the rest of the page that the disk refuses to read: it counts as damage.
func (c *Reader) SkipPage() { c.pages.skipPage() }

// Mark is the mark of the commit that Next found last. A segment whose header is damaged has no
// IDs.
func (c *Reader) Mark() Mark {
	return Mark{
		Position:  Position{Segment: c.number, Offset: c.Offset()},
		Log:       c.Header.Log,
		SegmentID: c.Header.Segment,
		Commit:    c.Commit.Number,
		Total:     c.Commit.Total,
	}
}

// ReadHeader reads the header of the segment of that number and length. It is zero (Version 0) if it
// is damaged; the error is the disk's, or ErrOtherFormat. The reader is to be reset afterwards.
func (c *Reader) ReadHeader(f io.ReaderAt, number int, size int64) (Header, error) {
	// The header is the first record, so what does not fit the first page is no header.
	c.Reset(f, number, min(size, PageSize), true)
	var err error
	for range ScanTries {
		if _, err = c.Next(); err == nil || errors.Is(err, ErrOtherFormat) {
			break
		}
	}
	if err != nil {
		return Header{}, err
	}
	return c.Header, nil
}
