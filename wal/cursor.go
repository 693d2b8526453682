package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"

	"hwsagent/wal/internal/segment"
	"hwsagent/wal/queue"
)

// cursor reads the log commit by commit. It is not safe for concurrent use.
type cursor struct {
	tail  tail
	log   *slog.Logger
	found *findings // counts damage

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

	// opened is the durable end of the log when the open segment was opened, and basis the same for the segment in which last was found.
	// What the reader has buffered of later commits may be what a failed fsync had dropped, and is not damage: see mayComeBack. After
	// rebase, the next segment that is opened gives basis.
	opened, basis Mark
	rebase        bool

	ready   bool // the reader is at a commit that next has not returned
	refused bool // the disk refused the last read

	// cuts are the samples that power cuts took, as the headers passed say, without overlaps. Those up to last do not matter.
	cuts []span
}

// span is the samples with totals after from, up to and including to.
type span struct{ from, to uint64 }

func newCursor(t tail, log *slog.Logger, found *findings) *cursor {
	return &cursor{tail: t, log: log, found: found, decode: newEntryDecoder(t.allSeries()), rebase: true}
}

// newSilentCursor creates a cursor that does not report damage, because the cursors that deliver do.
func newSilentCursor(t tail) *cursor {
	silent := slog.New(slog.DiscardHandler)
	return newCursor(t, silent, newFindings(silent))
}

// place moves the cursor behind the mark after, which belongs to the tail's log. The cursor
// reads up to end, which may be zero.
func (c *cursor) place(after, end Mark) {
	number := locate(c.tail, after)
	c.close()
	c.last, c.end, c.want, c.cuts, c.rebase = after, end, number, nil, true
}

// arrived reports whether the cursor has returned all entries up to its end.
func (c *cursor) arrived() bool { return c.end != (Mark{}) && c.last.Commit >= c.end.Commit }

// close closes the open segment, if there is one, and reports the damage found in it.
func (c *cursor) close() {
	if c.file == nil {
		return
	}
	if c.opened.Segment > c.want || c.opened.Commit >= c.tail.head().Commit { // else it may not be damage
		c.found.add(finding{segment: c.want, skipped: c.reader.Skipped()})
	}
	c.shut()
}

// shut closes the open segment, if there is one, when the damage in it is reported by a cursor that reads it again, or
// reads on in it.
func (c *cursor) shut() {
	if c.file == nil {
		return
	}
	if err := c.file.Close(); err != nil {
		c.log.Warn("Cannot close segment", "segment", segment.Name(c.want), "err", err)
	}
	c.file, c.ready = nil, false
}

// release closes the open segment, and releases all series and buffers, that of the last entry included. The next read
// starts at the beginning of the segment again.
func (c *cursor) release() {
	c.close()
	c.decode.series.release()
	c.reader, c.decode = segment.Reader{}, newEntryDecoder(c.tail.allSeries())
}

// errNotDurable means that commits behind the durable end cannot be read at present: the disk may have dropped them after a failed
// fsync. The log writes them again; then they can be read.
var errNotDurable = errors.New("commits that are not durable yet cannot be read")

// next returns the entry after last, or nil if there is none up to the head. Errors are those of the disk, or errNotDurable; the
// caller may retry.
func (c *cursor) next(head Mark) (*Entry, error) {
	ok, err := c.find(head)
	switch {
	case err != nil:
		return nil, err
	case !ok && c.last.Commit < head.Commit && c.basis.Commit < head.Commit:
		return nil, c.reread()
	case !ok:
		return nil, nil
	}
	commit := c.reader.Commit
	if c.end != (Mark{}) && commit.Number > c.end.Commit {
		if c.basis.Total < c.end.Total && c.last.Total < c.end.Total {
			return nil, c.reread() // it may come back, too
		}
		return c.stop(), nil
	}
	e := c.decodeCommit()
	missing := c.missing(commit, e.Count())
	if c.mayComeBack(commit, e.Count(), missing.Dropped[queue.Damage]) {
		return nil, c.reread()
	}
	c.ready = false
	e.End = c.reader.Mark()
	e.End.Log = head.Log // a damaged segment has no header
	e.MinT, e.MaxT = commit.MinT, commit.MaxT
	e.Missing = missing
	if commit.Number == c.end.Commit && commit.Total < c.end.Total {
		// A power cut took the commit at which the gap ends. A start that could read neither it nor the savepoint gave its number to another.
		e.Missing.Dropped[queue.PowerCut] += c.end.Total - commit.Total
	}
	c.last, c.basis = e.End, c.opened
	return e, nil
}

// mayComeBack reports whether some of the samples that count as damage before or in a commit, of which so many were decoded, were not
// durable yet when the cursor opened their segment.
func (c *cursor) mayComeBack(commit segment.Commit, decoded, damage uint64) bool {
	if damage == 0 {
		return false
	}
	within := commit.Samples - decoded
	return within > 0 && commit.Number > c.opened.Commit || damage > within && c.last.Total+damage-within > c.basis.Total
}

// reread makes the cursor read the commits after last from the disk again.
func (c *cursor) reread() error {
	c.shut()
	c.want, c.rebase = locate(c.tail, c.last), true
	return errNotDurable
}

// find moves the reader to the next commit after last in the open segment or a later one; ok is false if there is none up
// to the head.
func (c *cursor) find(head Mark) (ok bool, err error) {
	for c.want <= head.Segment {
		if c.file == nil {
			if ok, err := c.open(head); !ok || err != nil {
				return false, err
			}
		}
		if c.ready {
			if c.isNext(head) {
				return true, nil
			}
			c.skip()
			c.ready = false
		}
		c.extend(head)
		found, err := c.reader.Next()
		if c.refused = err != nil; err != nil {
			return false, fmt.Errorf("read segment %s: %w", segment.Name(c.want), err)
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
			c.ready = true
		case segment.FoundNothing:
			if !c.reader.IsFinal() {
				return false, nil
			}
			c.close()
			c.want++
		}
	}
	return false, nil
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
		c.found.add(finding{segment: s.Number, missing: s.Number - c.want})
		c.want, c.file, c.opened = s.Number, f, c.tail.safe()
		if c.rebase {
			c.basis, c.rebase = c.opened, false
		}
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
	if h.Found < h.Total {
		c.cut(span{h.Found, h.Total})
	}
	if h.Commit == c.last.Commit && h.Total > c.last.Total {
		// As in skip, but the refused commit cannot be read from where the lost one ended.
		c.cut(span{c.last.Total, h.Total})
	}
	return true
}

// cut adds samples to cuts.
func (c *cursor) cut(s span) {
	kept := c.cuts[:0]
	for _, o := range c.cuts {
		switch {
		case o.from <= s.to && s.from <= o.to:
			s = span{min(o.from, s.from), max(o.to, s.to)}
		case o.to > c.last.Total:
			kept = append(kept, o)
		}
	}
	c.cuts = append(kept, s)
}

// learn takes series announcements from records that belong to no valid commit.
//
// The writer writes no record that cannot be decoded. Such a record is damage that
// the checksums of fragments did not detect, and losing it has no effect here.
func (c *cursor) learn(rs segment.Records) { rs.Each(func(rec []byte) { _ = c.decode.learn(rec) }) }

// skip takes series announcements from the reader's commit, and the ends of series if it was returned before. Any other commit may
// not be valid.
func (c *cursor) skip() {
	commit := &c.reader.Commit
	if commit.Number > c.last.Commit {
		c.learn(c.reader.Good)
		return
	}
	if commit.Number < c.last.Commit && commit.Total > c.last.Total {
		// A power cut took the last commit, and brought back a refused one that was written before at its place.
		c.cut(span{c.last.Total, commit.Total})
	}
	c.reader.Good.Each(func(rec []byte) { _ = c.decode.skim(rec) })
}

// isNext reports whether the reader's commit comes after last and can be valid.
func (c *cursor) isNext(head Mark) bool {
	commit := &c.reader.Commit
	if commit.Number > head.Commit || commit.Total > head.Total {
		// Assembled from pieces of other pages, or of another log.
		c.log.Warn("Skipping a commit beyond the head of the log", "segment", segment.Name(c.want), "commit", commit.Number)
		return false
	}
	return commit.Number > c.last.Commit && !c.tail.isRefused(commit.Number)
}

// decodeCommit decodes the commit of the reader.
func (c *cursor) decodeCommit() *Entry {
	d := c.decode
	d.reset()
	c.reader.Good.Each(func(rec []byte) {
		if err := d.decode(rec); err != nil {
			c.log.Error("Cannot decode a record of the log", "segment", segment.Name(c.want), "commit", c.reader.Commit.Number, "err", err)
		}
	})
	return &d.to.entry
}

// stop returns an entry without samples that ends at the cursor's end. The commit there is
// lost, because the cursor found a later one.
func (c *cursor) stop() *Entry {
	c.decode.reset()
	e := &c.decode.to.entry
	e.End = c.end
	e.MinT, e.MaxT = 0, 0
	e.Missing = c.missing(segment.Commit{Number: c.end.Commit, Total: c.end.Total}, 0)
	c.last = c.end
	return e
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
func (c *cursor) missing(commit segment.Commit, decoded uint64) queue.Outcome {
	var o queue.Outcome
	begin := commit.Total - commit.Samples
	if begin < c.last.Total || commit.Samples < decoded {
		// The totals contradict each other. Deliver anyway; the ledger shows the error.
		c.log.Error("The log's totals contradict each other", "segment", segment.Name(c.want), "commit", commit.Number,
			"total", commit.Total, "samples", commit.Samples, "decoded", decoded, "total_before", c.last.Total)
		return o
	}
	for _, s := range c.cuts {
		if from, to := max(s.from, c.last.Total), min(s.to, begin); from < to {
			o.Dropped[queue.PowerCut] += to - from
		}
	}
	o.Dropped[queue.Damage] = begin - c.last.Total - o.Dropped[queue.PowerCut] + commit.Samples - decoded
	return o
}

// giveUp treats the page that the disk refuses to read as damage. It returns false if the disk has not refused the last read.
func (c *cursor) giveUp() bool {
	if c.refused {
		c.reader.SkipPage()
	}
	return c.refused
}
