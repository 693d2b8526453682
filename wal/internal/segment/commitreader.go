package segment

import (
	"errors"
	"hash/crc32"
	"io"
)

// MaxCommit bounds the uncompressed records of a commit, in bytes, because readers keep them
// in memory until they reach the commit record. The encoder refuses larger commits, and
// readers treat them as damage.
const MaxCommit = 256 << 20

// Reader assembles the commits of one segment. It verifies the record count, and the
// checksum over the uncompressed bytes and the place.
type Reader struct {
	pages  PageReader
	number int // of the segment, by the name of its file

	// buf holds the records read since the last commit record; ends has the end of each.
	buf  []byte
	ends []int

	// The results of the last call of Next, valid until the following call. Header is valid after
	// FoundHeader; Commit, and its records Good, after FoundCommit. Debris are records without a
	// valid commit; a reader may still learn the series that they announce.
	Header Header
	Commit Commit
	Good   Records
	Debris Records

	consumed bool // the records in buf were returned; Next discards them
	usual    int  // size of buf that large recent commits need, in bytes
	broken   int  // commit records that failed verification
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

// Found is the kind of result of Next.
type Found uint8

const (
	FoundNothing Found = iota // reached the limit
	FoundHeader               // the header of the segment, see [Reader.Header]
	FoundCommit               // a commit that passes verification
	FoundDebris               // a commit that fails verification, or records without a commit at a final limit
)

// Reset makes c read the segment of that number from the beginning of r. It keeps the buffers.
func (c *Reader) Reset(r io.ReaderAt, number int, limit int64, final bool) {
	c.number = number
	c.pages.Reset(r, limit, final)
	c.buf, c.ends, c.consumed = c.buf[:0], c.ends[:0], false
	c.Header, c.broken = Header{}, 0
}

// Next reads up to the next header or commit record. The error is that of the disk (the
// caller may retry), or means that the segment has another format.
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

// maxKept is the capacity, in bytes, up to which buf is kept even if commits need far less.
const maxKept = 64 << 10

// shrink releases buf if recent commits needed far less, because a commit that announces many series is large, and
// each target has a reader.
func (c *Reader) shrink() {
	c.usual = max(len(c.buf), c.usual-c.usual/8)
	if cap(c.buf) > max(maxKept, 4*c.usual) {
		c.buf = nil
	}
}

// verify checks the records in buf against the commit record rec. After damage, the last
// of them may be a whole commit, and the records before them the rest of another.
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

// Offset is the end of the last result of Next.
func (c *Reader) Offset() int64 { return c.pages.Offset() }

// Skipped is the number of bytes of the file skipped as damage.
func (c *Reader) Skipped() int64 { return c.pages.Skipped }

// IsFinal reports whether the limit is the end of the segment.
func (c *Reader) IsFinal() bool { return c.pages.Final }

// Extend raises the limit to that many bytes, if that is more than before. final means that the limit is the end
// of the segment.
func (c *Reader) Extend(limit int64, final bool) {
	c.pages.Limit, c.pages.Final = max(c.pages.Limit, limit), final
}

// SkipPage skips the rest of a page that the disk refuses to read, and counts it as damage.
func (c *Reader) SkipPage() { c.pages.skipPage() }

// Mark is the mark of the last commit that Next found. Its IDs are zero if the header of the
// segment is damaged.
func (c *Reader) Mark() Mark {
	return Mark{
		Position:  Position{Segment: c.number, Offset: c.Offset()},
		Log:       c.Header.Log,
		SegmentID: c.Header.Segment,
		Commit:    c.Commit.Number,
		Total:     c.Commit.Total,
	}
}

// ReadHeader reads the header of the segment of that number and size. The header is zero (Version 0) if
// it is damaged; the error is that of the disk, or ErrOtherFormat. Call Reset afterwards.
func (c *Reader) ReadHeader(f io.ReaderAt, number int, size int64) (Header, error) {
	// The header is the first record, so it is in the first page.
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
