package wal

import (
	"errors"
	"io"
	"slices"
	"testing/fstest"

	"hwsagent/agent/inspect/stock"
	"hwsagent/wal/internal/segment"
)

// filesOf are the files of a directory as they are now.
func filesOf(d *memDir) fstest.MapFS {
	d.mu.Lock()
	defer d.mu.Unlock()
	files := fstest.MapFS{}
	for name, i := range d.entries {
		files[name] = &fstest.MapFile{Data: i.data.bytes()}
	}
	return files
}

// readStock demands that Prometheus' reader finds the same commits in the log's files. Where a power cut has left damage in the middle of a segment, that reader does
// not go on behind it, and there is nothing to compare. If a damaged length leads beyond the end of the file, that looks to it like
// a file that ends there: then the rest of that segment is not compared.
func (c *crashLife) readStock(l *Log, view []seen) {
	if slices.ContainsFunc(l.index.segments(), func(s segment.Info) bool { return s.End < s.Size }) && c.hit() {
		return // the disk has refused to cut a segment off, and no header disowns the rest yet
	}
	r, err := stock.New(filesOf(c.segments))
	if err != nil {
		c.fail("list segments for Prometheus' reader: %v", err)
		return
	}
	var ours, theirs []uint64
	last := map[int]uint64{} // commit of theirs, by segment
	commits := stock.Commits{Reader: r, Log: stock.ID(l.head().Log)}
	for {
		e, err := commits.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || e.Unannounced > 0 {
			return // damage took the announcements, or the files cannot be read
		}
		if len(e.Samples) > 0 {
			theirs = append(theirs, e.Commit.Number)
			last[e.Segment] = e.Commit.Number
		}
	}
	if slices.ContainsFunc(r.Stops(), func(s stock.Stop) bool { return !s.Torn }) {
		return
	}
	for _, s := range view {
		torn := slices.ContainsFunc(r.Stops(), func(stop stock.Stop) bool { return stop.Segment == s.segment })
		if c.cut && torn && s.end.Commit > last[s.segment] {
			theirs = slices.DeleteFunc(theirs, func(n uint64) bool { return n == s.end.Commit }) // logged again
		} else {
			ours = append(ours, s.end.Commit)
		}
	}
	c.tally.Stock++
	if !slices.Equal(ours, theirs) {
		c.fail("our reader finds other commits than Prometheus': %v and %v", ours, theirs)
	}
}
