package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync/atomic"

	"hwsagent/wal/internal/segment"
)

// cursor reads the log commit by commit for one target. It is not safe for concurrent
// use.
type cursor struct {
	tail tail
	log  *slog.Logger

	// last is the mark of the last entry returned, or where the cursor was placed. The
	// cursor skips commits with numbers up to it.
	last Mark

	// end, if not zero, is where the cursor stops. If it finds a later commit first, it
	// returns an entry that counts the samples missing up to end.
	end Mark

	// want is the number of the open segment, or of the next one to open.
	want   int
	file   segmentFile // nil if none is open
	reader segment.Reader
	decode *entryDecoder

	// powerCut counts the samples that the headers passed since last declare lost.
	powerCut uint64

	// Totals since the cursor was created: bytes skipped as damage, in segments up to
	// counted, and missing segment numbers below the highest opened.
	damaged  atomic.Int64
	counted  int
	holes    atomic.Int64
	furthest int
}

func newCursor(t tail, log *slog.Logger) *cursor {
	return &cursor{tail: t, log: log, decode: newEntryDecoder(t.pool()), counted: -1, furthest: -1}
}

// place moves the cursor behind the mark after, which belongs to the tail's log. The cursor
// reads up to end, which may be zero.
func (c *cursor) place(after, end Mark) {
	number := locate(c.tail, after)
	c.close()
	c.last, c.end, c.want, c.powerCut = after, end, number, 0
}

// arrived reports whether the cursor has returned all entries up to its end.
func (c *cursor) arrived() bool { return c.end != (Mark{}) && c.last.Commit >= c.end.Commit }

// close closes the open segment, if there is one.
func (c *cursor) close() {
	if c.file == nil {
		return
	}
	if n := c.reader.Skipped(); n > 0 && c.want > c.counted {
		c.damaged.Add(n)
		c.counted = c.want
		c.log.Warn("Skipped damage in the log", "segment", segment.Name(c.want), "bytes", n)
	}
	if err := c.file.Close(); err != nil {
		c.log.Warn("Cannot close segment", "segment", segment.Name(c.want), "err", err)
	}
	c.file = nil
}

// release closes the open segment and releases all series. The next read starts at the beginning of the segment
// again.
func (c *cursor) release() {
	c.close()
	c.decode.series.release()
}

// next returns the entry after last, or nil if there is none up to the head. Errors are
// those of the disk; the caller may retry.
func (c *cursor) next(head Mark) (*Entry, error) {
	for c.want <= head.Segment {
		if c.file == nil {
			if ok, err := c.open(head); !ok || err != nil {
				return nil, err
			}
		}
		c.extend(head)
		found, err := c.reader.Next()
		if err != nil {
			return nil, fmt.Errorf("read segment %s: %w", segment.Name(c.want), err)
		}
		switch found {
		case segment.FoundHeader:
			if !c.pass(c.reader.Header, head) {
				c.close()
				c.want++
			}
		case segment.FoundDebris:
			c.learn(c.reader.Debris)
		case segment.FoundCommit:
			c.learn(c.reader.Debris)
			if e := c.take(head); e != nil {
				return e, nil
			}
		case segment.FoundNothing:
			if !c.reader.IsFinal() {
				return nil, nil
			}
			c.close()
			c.want++
		}
	}
	return nil, nil
}

// open opens the first existing segment from want on, up to that of the head.
func (c *cursor) open(head Mark) (ok bool, err error) {
	segments := c.tail.segments()
	i, _ := slices.BinarySearchFunc(segments, c.want, func(s segment.Info, n int) int { return s.Number - n })
	for ; i < len(segments) && segments[i].Number <= head.Segment; i++ {
		s := segments[i]
		f, err := c.tail.openSegment(s.Number)
		if errors.Is(err, fs.ErrNotExist) {
			continue // dropped meanwhile
		}
		if err != nil {
			return false, fmt.Errorf("open segment %s: %w", segment.Name(s.Number), err)
		}
		if hole := s.Number - c.want; hole > 0 && s.Number > c.furthest {
			c.holes.Add(int64(hole))
			c.log.Warn("Segments of the log are missing", "from", segment.Name(c.want), "to", segment.Name(s.Number-1))
		}
		c.want, c.file, c.furthest = s.Number, f, max(c.furthest, s.Number)
		c.decode.series.turn()
		if s.Number == head.Segment {
			c.reader.Reset(f, s.Number, head.Offset, false)
		} else {
			c.reader.Reset(f, s.Number, s.End, true)
		}
		return true, nil
	}
	return false, nil
}

// extend lets the reader see new commits in the head segment, or the end of a segment
// that was the head segment before.
func (c *cursor) extend(head Mark) {
	switch {
	case c.reader.IsFinal():
	case c.want == head.Segment:
		c.reader.Extend(head.Offset, false)
	default:
		end := int64(0)
		if s := c.segment(); s != nil {
			end = s.End
		}
		c.reader.Extend(end, true)
	}
}

// pass processes a segment's header. It returns false if the segment belongs to another
// log, whose commit numbers are not comparable.
func (c *cursor) pass(h segment.Header, head Mark) bool {
	if h.Log != head.Log {
		c.log.Warn("Skipping a segment of another log", "segment", segment.Name(c.want), "log", h.Log.String())
		return false
	}
	if from := max(h.Found, c.last.Total); h.Total > from {
		c.powerCut += h.Total - from
	}
	return true
}

// learn takes series announcements from records that belong to no valid commit.
func (c *cursor) learn(rs segment.Records) {
	rs.Each(func(rec []byte) {
		// The writer writes no record that cannot be decoded. Such a record is damage that
		// the checksums of fragments did not detect, and losing it has no effect here.
		_ = c.decode.learn(rec)
	})
}

// take decodes the commit that the reader found. It returns nil if the commit was returned
// before, comes again later, or cannot be valid.
func (c *cursor) take(head Mark) *Entry {
	commit := c.reader.Commit
	switch {
	case commit.Number <= c.last.Commit:
		c.learn(c.reader.Good)
		return nil
	case commit.Number > head.Commit || commit.Total > head.Total:
		// Assembled from pieces of other pages, or of another log.
		c.log.Warn("Skipping a commit beyond the head of the log", "segment", segment.Name(c.want), "commit", commit.Number)
		c.learn(c.reader.Good)
		return nil
	case commit.Total-commit.Samples != c.last.Total && c.comesAgain(commit.Number):
		c.learn(c.reader.Good) // an earlier commit is lost here; a later segment repeats both
		return nil
	case c.end != (Mark{}) && commit.Number > c.end.Commit:
		return c.stop()
	}
	d := c.decode
	d.reset()
	c.reader.Good.Each(func(rec []byte) {
		if err := d.decode(rec); err != nil {
			c.log.Error("Cannot decode a record of the log", "segment", segment.Name(c.want), "commit", commit.Number, "err", err)
		}
	})
	e := &d.entry
	if e.Count() < commit.Samples && c.comesAgain(commit.Number) {
		return nil // announcements of its series are lost here; the repeated commit may be complete
	}
	e.End = c.reader.Mark()
	e.End.Log = head.Log // a damaged segment has no header
	e.MinT, e.MaxT = commit.MinT, commit.MaxT
	e.Missing = c.missing(commit, e.Count())
	c.last, c.powerCut = e.End, 0
	return e
}

// stop returns an entry without samples that ends at the cursor's end. The commit there is
// lost, because the cursor found a later one.
func (c *cursor) stop() *Entry {
	c.decode.reset()
	e := &c.decode.entry
	e.End = c.end
	e.MinT, e.MaxT = 0, 0
	e.Missing = c.missing(segment.Commit{Number: c.end.Commit, Total: c.end.Total}, 0)
	c.last, c.powerCut = c.end, 0
	return e
}

// comesAgain reports whether a later segment repeats that commit of the open one: a segment
// begun after an error starts with the commits that were not durable.
func (c *cursor) comesAgain(number uint64) bool {
	s := c.segment()
	return s != nil && s.ComesAgain(number)
}

// segment returns the Info of the open segment; nil if it was removed.
func (c *cursor) segment() *segment.Info {
	list := c.tail.segments()
	for i := range list {
		if list[i].Number == c.want {
			return &list[i]
		}
	}
	return nil
}

// missing counts the samples between last and the end of the commit that were not decoded.
func (c *cursor) missing(commit segment.Commit, decoded uint64) Outcome {
	var o Outcome
	begin := commit.Total - commit.Samples
	if begin < c.last.Total || commit.Samples < decoded {
		// The totals contradict each other. Deliver anyway; the ledger shows the error.
		c.log.Error("The log's totals contradict each other", "segment", segment.Name(c.want), "commit", commit.Number,
			"total", commit.Total, "samples", commit.Samples, "decoded", decoded, "total_before", c.last.Total)
		return o
	}
	gap := begin - c.last.Total
	o.Dropped[PowerCut] = min(gap, c.powerCut)
	o.Dropped[Damage] = gap - o.Dropped[PowerCut] + commit.Samples - decoded
	return o
}

// giveUp treats the page that the disk refuses to read as damage. It returns false if no
// segment is open.
func (c *cursor) giveUp() bool {
	if c.file == nil {
		return false
	}
	c.reader.SkipPage()
	return true
}
