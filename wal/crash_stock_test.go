package wal

import (
	"errors"
	"io"
	"slices"
	"syscall"
	"testing"
	"testing/fstest"
	"testing/synctest"

	"hwsagent/wal/stock"
)

// filesOf are the files of a directory as they are now.
func filesOf(d *memDir) fstest.MapFS {
	d.mu.Lock()
	defer d.mu.Unlock()
	files := fstest.MapFS{}
	for name, i := range d.entries {
		files[name] = &fstest.MapFile{Data: slices.Clone(i.data)}
	}
	return files
}

// readStock demands that Prometheus' reader finds the same commits in the log's files. (One that
// was logged again after an error may be read at either place.) Where a power cut has left damage in the middle of a segment, that reader does
// not go on behind it, and there is nothing to compare.
func (c *crashLife) readStock(l *Log, view []seen) {
	r, err := stock.New(filesOf(c.segments))
	if err != nil {
		c.fail("list segments for Prometheus' reader: %v", err)
		return
	}
	var ours, theirs []uint64
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
		}
	}
	if slices.ContainsFunc(r.Stops(), func(s stock.Stop) bool { return !s.Torn }) {
		return
	}
	for _, s := range view {
		ours = append(ours, s.end.Commit)
	}
	c.tally.Stock++
	if !slices.Equal(ours, theirs) {
		c.fail("our reader finds other commits than Prometheus': %v and %v", ours, theirs)
	}
}

// What was logged again after an fsync error counts once with Prometheus' reader, too.
func TestStockReadsWhatIsLoggedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEndedLog(t)
		e.answer <- syscall.EIO
		synctest.Wait()
		e.commit()
		r, err := stock.New(filesOf(e.segments))
		if err != nil {
			t.Fatal(err)
		}
		commits := stock.Commits{Reader: r, Log: stock.ID(e.log.head().Log)}
		var values []float64
		for {
			c, err := commits.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, c.Samples[0].V)
		}
		if !slices.Equal(values, e.values) || len(r.Stops()) > 0 {
			t.Errorf("Prometheus' reader finds %v, stops %v; acknowledged %v", values, r.Stops(), e.values)
		}
	})
}
