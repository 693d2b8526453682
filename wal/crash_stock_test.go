package wal

import (
	"errors"
	"io"
	"slices"
	"testing"
	"testing/fstest"

	"hwsagent/agent/inspect/stock"
	"hwsagent/wal/internal/segment"
	"hwsagent/wal/internal/segmenttest"
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

// readStock demands that Prometheus' reader finds the same commits in the log's files. (One that
// was logged again after an error may be read at either place.) Where a power cut has left damage in the middle of a segment, that reader does
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

// After two errors in a row the second segment holds a commit that the third has once more, behind older ones: Prometheus' reader finds each once,
// in the order of their numbers.
func TestStockReadsWhatIsLoggedAgainTwice(t *testing.T) {
	files := fstest.MapFS{}
	for n, holds := range [][2]uint64{{0, 2}, {4, 5}, {2, 6}} {
		s := segmenttest.New(n, ID{9}, holds[0], holds[0])
		for i := holds[0]; i < holds[1]; i++ {
			s.Commit(1, int64(i+1), int64(i+1), segmenttest.Series(1), segmenttest.Samples(int64(i+1), 1))
		}
		files[segment.Name(n)] = &fstest.MapFile{Data: s.B}
	}
	if numbers := stockNumbers(t, files); !slices.Equal(numbers, []uint64{1, 2, 3, 4, 5, 6}) {
		t.Errorf("it finds %v", numbers)
	}
}

// The second segment repeats the commits after 2 up to 6, and a power cut took its end: Prometheus' reader finds those of the first segment, which has all.
func TestStockReadsTheFirstSegmentWhereTheRepetitionIsCutShort(t *testing.T) {
	files := fstest.MapFS{}
	for n, holds := range [][2]uint64{{0, 6}, {2, 4}} {
		s := segmenttest.New(n, ID{9}, holds[0], holds[0])
		if n == 1 {
			s.Header.Relogged = 6
		}
		for i := holds[0]; i < holds[1]; i++ {
			s.Commit(1, int64(i+1), int64(i+1), segmenttest.Series(1), segmenttest.Samples(int64(i+1), 1))
		}
		files[segment.Name(n)] = &fstest.MapFile{Data: s.B}
	}
	if numbers := stockNumbers(t, files); !slices.Equal(numbers, []uint64{1, 2, 3, 4, 5, 6}) {
		t.Errorf("it finds %v", numbers)
	}
}

// stockNumbers returns the numbers of the commits that Prometheus' reader finds. It must not stop before the end of any segment.
func stockNumbers(t *testing.T, files fstest.MapFS) (numbers []uint64) {
	t.Helper()
	r, err := stock.New(files)
	if err != nil {
		t.Fatal(err)
	}
	for commits := (stock.Commits{Reader: r, Log: stock.ID{9}}); ; {
		e, err := commits.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, e.Commit.Number)
	}
	if stops := r.Stops(); len(stops) > 0 {
		t.Errorf("it stops at %v", stops)
	}
	return numbers
}
