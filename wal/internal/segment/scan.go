package segment

import (
	"errors"
	"io"
	"math"
)

// Contents is the result of a scan of one segment.
type Contents struct {
	Header Header // zero (Version 0) when it is unreadable

	// Last is the mark of the last good commit; zero if there is none. Its Log and SegmentID are
	// the header's, so zero too when that is unreadable.
	Last Mark

	// End is where the good commits end, or the header if there are none.
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

// ScanTries is how often a scan asks the disk for a page before it skips the page.
const ScanTries = 3

// Scan reads the header and all commits in the first size bytes of the segment of that
// number. It tolerates damage, and pages that the disk refuses to read: these cost what touches
// them, as they cost a cursor. The error says that the segment is of another format.
func Scan(r io.ReaderAt, number int, size int64) (Contents, error) {
	var c Reader
	c.Reset(r, number, size, true)
	return c.Scan(nil)
}

// Scan reads all commits; their records go to learn, if that is not nil.
func (c *Reader) Scan(learn func(rec []byte)) (Contents, error) {
	info := Contents{MinT: math.MaxInt64, MaxT: math.MinInt64}
	tries := 0
	for {
		f, err := c.Next()
		if errors.Is(err, ErrOtherFormat) {
			return info, err
		}
		if err != nil {
			if tries++; tries >= ScanTries {
				tries = 0
				if info.Refused == nil {
					info.Refused = err
				}
				c.pages.skipPage()
				info.TailRefused = c.pages.start >= c.pages.Limit
			}
			continue
		}
		tries = 0
		switch f {
		case FoundHeader:
			info.Header = c.Header
			info.End = c.Offset()
		case FoundCommit:
			info.End = c.Offset()
			if c.Commit.Number <= info.Last.Commit {
				continue // of an earlier file of this number, which failed
			}
			if info.Commits == 0 {
				info.FirstCommit = c.Commit.Number
				info.Before = c.Commit.Total - c.Commit.Samples
			}
			info.Commits++
			info.Samples += c.Commit.Samples
			info.Last = c.Mark()
			if learn != nil {
				c.Good.Each(learn)
			}
			if c.Commit.Samples > 0 {
				info.MinT, info.MaxT = min(info.MinT, c.Commit.MinT), max(info.MaxT, c.Commit.MaxT)
			}
		case FoundNothing:
			if info.MinT > info.MaxT {
				info.MinT, info.MaxT = 0, 0
			}
			info.Damaged, info.Broken = c.pages.Skipped, c.broken
			return info, nil
		}
	}
}
