package wal

import (
	"errors"
	"hash/crc32"
	"io"
	"math"
)

// maxCommit bounds the uncompressed records of a commit, in bytes: those that a reader
// holds while it waits for the commit record. The encoder refuses to write a longer one,
// and a reader takes it for damage.
const maxCommit = 256 << 20

// commitReader assembles the commits of one segment and verifies them: record count
// and checksum over the uncompressed bytes.
type commitReader struct {
	pages pageReader

	// buf holds the records read since the last commit record, ends where each ends.
	buf  []byte
	ends []int

	// What the last call of next found. header is valid after gotHeader. commit and
	// good are valid after gotCommit: good are the records of the commit. debris are
	// records that belong to no commit that verifies; what they announce may still be
	// learnt. All are valid until the following call.
	header Header
	commit commitRecord
	good   records
	debris records

	consumed bool // buf was handed out and starts anew
	broken   int  // commit records that did not verify
}

// records are consecutive records in one buffer.
type records struct {
	buf   []byte
	start int
	ends  []int
}

// each calls f with each record.
func (rs records) each(f func(rec []byte)) {
	from := rs.start
	for _, end := range rs.ends {
		f(rs.buf[from:end])
		from = end
	}
}

// found says what next came upon.
type found uint8

const (
	foundNothing found = iota // at the limit
	foundHeader
	foundCommit
	foundDebris // a commit that does not verify, or records at a final limit
)

// reset makes c read r from its beginning; the buffers are kept.
func (c *commitReader) reset(r io.ReaderAt, limit int64, final bool) {
	c.pages.reset(r, limit, final)
	c.buf, c.ends, c.consumed = c.buf[:0], c.ends[:0], false
	c.header, c.broken = Header{}, 0
}

// next reads up to the next header or commit record. The error is the disk's (the
// call may be repeated) or says that the segment has a newer format version.
func (c *commitReader) next() (found, error) {
	if c.consumed {
		c.buf, c.ends, c.consumed = c.buf[:0], c.ends[:0], false
	}
	c.good, c.debris = records{}, records{}
	for {
		from := len(c.buf)
		buf, ok, err := c.pages.next(c.buf)
		if err != nil {
			return foundNothing, err
		}
		if !ok {
			if !c.pages.final || len(c.ends) == 0 {
				return foundNothing, nil
			}
			c.consumed = true
			c.debris = records{buf: c.buf, ends: c.ends}
			return foundDebris, nil
		}
		c.buf = buf
		rec := buf[from:]
		if len(rec) == 0 {
			continue
		}
		switch rec[0] {
		case typeHeader:
			c.buf = buf[:from]
			if c.header.Version != 0 {
				continue // a page that was written twice
			}
			if c.header, err = decodeHeader(rec); err != nil {
				c.header = Header{}
				return foundNothing, err
			}
			return foundHeader, nil
		case typeCommit:
			c.buf, c.consumed = buf[:from], true
			return c.verify(rec), nil
		}
		if len(c.buf) > maxCommit {
			c.buf, c.ends = c.buf[:0], c.ends[:0]
			continue
		}
		c.ends = append(c.ends, len(c.buf))
	}
}

// verify checks the records read against the commit record rec. After damage, the
// last of them may be a whole commit and those before it the rest of another.
func (c *commitReader) verify(rec []byte) found {
	c.debris = records{buf: c.buf, ends: c.ends}
	commit, err := decodeCommit(rec)
	split := len(c.ends) - int(commit.Records)
	if err != nil || split < 0 || commit.Samples > commit.Total {
		c.broken++
		return foundDebris
	}
	from := 0
	if split > 0 {
		from = c.ends[split-1]
	}
	if crc32.Checksum(c.buf[from:], castagnoli) != commit.CRC {
		c.broken++
		return foundDebris
	}
	c.commit = commit
	c.good = records{buf: c.buf, start: from, ends: c.ends[split:]}
	c.debris.ends = c.ends[:split]
	return foundCommit
}

// offset is the end of what next returned last.
func (c *commitReader) offset() int64 { return c.pages.offset() }

// segmentInfo is what a scan found in one segment.
type segmentInfo struct {
	Header Header // zero (Version 0) when it is unreadable

	// Last is the mark of the last good commit; zero if there is none. Its Segment and
	// SegmentID are the header's, so zero too when that is unreadable.
	Last Mark

	// End is where the good commits end, or the header if there are none. Last does not
	// end there if pages changed places.
	End int64

	Commits     int
	Samples     uint64 // in these commits
	FirstCommit uint64 // number of the first of these commits
	Before      uint64 // the total before that one
	MinT, MaxT  int64  // of the samples, milliseconds; both 0 if there are none
	Damaged     int64  // bytes of the file that could not be read, a torn end included
	Broken      int    // commit records that did not verify

	// Refused is the disk's error for the first page that it refused to read, nil if there
	// was none; TailRefused says that it refused the last page, so that there may be commits
	// behind the last one that was read.
	Refused     error
	TailRefused bool
}

// scanTries is how often a scan asks the disk for a page before it skips the page.
const scanTries = 3

// scanSegment reads the header and all commits in the first size bytes of r. It
// tolerates damage, and pages that the disk refuses to read: these cost what touches them,
// as they cost a cursor. The error says that the segment has a newer format version.
func scanSegment(r io.ReaderAt, size int64) (segmentInfo, error) {
	var c commitReader
	c.reset(r, size, true)
	return c.scan(nil)
}

// scan reads all commits; what they announce goes to learn, if that is not nil.
func (c *commitReader) scan(learn *entryDecoder) (segmentInfo, error) {
	info := segmentInfo{MinT: math.MaxInt64, MaxT: math.MinInt64}
	tries := 0
	for {
		f, err := c.next()
		if errors.Is(err, errNewerFormat) {
			return info, err
		}
		if err != nil {
			if tries++; tries >= scanTries {
				tries = 0
				if info.Refused == nil {
					info.Refused = err
				}
				c.pages.skipPage()
				info.TailRefused = c.pages.start >= c.pages.limit
			}
			continue
		}
		tries = 0
		switch f {
		case foundHeader:
			info.Header = c.header
			info.End = c.offset()
		case foundCommit:
			info.End = c.offset()
			if c.commit.Number <= info.Last.Commit {
				continue // written twice, or out of its place
			}
			if info.Commits == 0 {
				info.FirstCommit = c.commit.Number
				info.Before = c.commit.Total - c.commit.Samples
			}
			info.Commits++
			info.Samples += c.commit.Samples
			info.Last = markOf(c.header, c.header.Number, c.offset(), c.commit)
			if learn != nil {
				c.good.each(func(rec []byte) { _ = learn.learn(rec) })
			}
			if c.commit.Samples > 0 {
				info.MinT, info.MaxT = min(info.MinT, c.commit.MinT), max(info.MaxT, c.commit.MaxT)
			}
		case foundNothing:
			if info.MinT > info.MaxT {
				info.MinT, info.MaxT = 0, 0
			}
			info.Damaged, info.Broken = c.pages.skipped, c.broken
			return info, nil
		}
	}
}

// markOf is the mark of a commit that ends at offset in the segment with that header
// and number. The number counts: a damaged segment has no header.
func markOf(h Header, segment int, offset int64, c commitRecord) Mark {
	return Mark{
		Position:  Position{Segment: segment, Offset: offset},
		Log:       h.Log,
		SegmentID: h.Segment,
		Commit:    c.Number,
		Total:     c.Total,
	}
}

// markBefore is the mark of everything before the segment with that header and
// number. Samples that a power cut took right before it lie behind the mark.
func markBefore(h Header, segment int) Mark {
	return Mark{
		Position:  Position{Segment: segment},
		Log:       h.Log,
		SegmentID: h.Segment,
		Commit:    h.Commit,
		Total:     h.Found,
	}
}
