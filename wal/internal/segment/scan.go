package segment

import (
	"errors"
	"io"
	"math"
)

// Contents is the result of a scan of one segment.
type Contents struct {
	Header Header // zero (Version 0) if it is unreadable

	// Last is the mark of the last good commit; zero if there is none. Its Log and SegmentID are
	// those of the header, so they are zero if the header is unreadable.
	Last Mark

	// End is the end of the good commits, or of the header if there are none.
	End int64

	Commits     int
	Samples     uint64 // in these commits
	FirstCommit uint64 // number of the first of these commits
	Before      uint64 // the total before that one
	MinT, MaxT  int64  // of the samples, milliseconds; both 0 if there are none
	Damaged     int64  // unreadable bytes of the file, including a torn end
	Broken      int    // commit records that failed verification

	// Refused is the disk error of the first unreadable page, nil if there is none. TailRefused
	// means that the last page is unreadable, so there may be commits after the last one that
	// was read.
	Refused     error
	TailRefused bool
}

// ScanTries is the number of times that a scan tries to read a page before it skips the page.
const ScanTries = 3

// Scan reads the header and all commits in the first size bytes of the segment of that
// number. As for a cursor, damage and unreadable pages lose only the commits that touch them.
// The error means that the segment has another format.
func Scan(r io.ReaderAt, number int, size int64) (Contents, error) {
	var c Reader
	c.Reset(r, number, size, true)
	return c.Scan(nil)
}

// Scan reads all commits and passes their records to learn, if it is not nil.
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
