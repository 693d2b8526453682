package wal

// places knows which commits of a segment come too early: pages may change places, or come
// from another segment, and a cursor that took a commit of such a page would pass over
// everything with a lower number that follows.
type places struct {
	// late are the commits with a lower number than one before them in the file. There
	// are none in a segment as it was written.
	late []late

	segment segmentRef
}

// late is one commit that others with higher numbers precede.
type late struct {
	end    int64 // where it ends in the file
	number uint64
}

// tooEarly reports whether a commit that ends at that offset precedes one that is to come
// before it and was not seen yet, as of the last commit number that was.
func (p *places) tooEarly(number uint64, end int64, seen uint64) bool {
	if p.segment.comesAgain(number) {
		return true // the next segment has it
	}
	for _, l := range p.late {
		if l.end > end && l.number > seen && l.number < number {
			return true
		}
	}
	return false
}

// findLate reads the first size bytes of a segment, as far as the disk lets it: what it
// refuses is dealt with when the cursor comes there.
func findLate(f segmentFile, size int64) []late {
	var c commitReader
	var found []late
	c.reset(f, size, true)
	for top := uint64(0); ; {
		what, err := c.next()
		switch {
		case err != nil || what == foundNothing:
			return found
		case what != foundCommit:
		case c.commit.Number < top:
			found = append(found, late{c.offset(), c.commit.Number})
		default:
			top = c.commit.Number
		}
	}
}

// outOfPlace reports whether the commit that the reader found stands before others that
// come first. Only one that does not follow on what was seen last can.
func (c *cursor) outOfPlace() bool {
	commit := c.reader.commit
	if commit.Number <= c.last.Commit || commit.Total-commit.Samples == c.last.Total {
		return false
	}
	if c.places == nil {
		c.places = &places{late: findLate(c.file, c.reader.pages.limit)}
		for _, s := range c.tail.segments() {
			if s.Number == c.want {
				c.places.segment = s
			}
		}
	}
	return c.places.tooEarly(commit.Number, c.reader.offset(), c.last.Commit)
}
