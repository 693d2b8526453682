package wal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hwsagent/wal/queue"
)

// removedFiles returns the removed files below dir that this process has open.
func removedFiles(t *testing.T, dir string) (removed []string) {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || len(links) == 0 {
		t.Fatalf("%d descriptors, %v", len(links), err)
	}
	for _, link := range links {
		if file, err := os.Readlink(link); err == nil && strings.HasPrefix(file, dir) && strings.HasSuffix(file, " (deleted)") {
			removed = append(removed, file)
		}
	}
	return removed
}

// TestDropLeavesNoSegmentOpen: wherever a waiting lane is in the segments that the log drops, also behind the last commit of the last
// one, it holds none of their files: a full disk would not get back the space.
func TestDropLeavesNoSegmentOpen(t *testing.T) {
	at := 0
	for read := 1; at == 0; read++ {
		dir := filepath.Join(t.TempDir(), "log")
		o := Options{Dir: dir, SegmentBytes: 20_000}
		l := openLog(t, o)
		r := openReader(t, l, "a", ReaderOptions{})
		for i := range 40 {
			if err := commitNoise(l, 200, int64(i)); err != nil {
				t.Fatal(err)
			}
		}
		for range read {
			at = mustNext(t, r).End.Segment
		}
		_, used := l.index.usage()
		for _, most := range []int64{used - 1, used / 3} { // the first drops the oldest segment only
			s := o.Settings
			s.MaxBytes = most
			l.Reconfigure(s)
			l.budget.enforce(0)
			if r.Ledger().Dropped[queue.Budget] == 0 {
				t.Fatalf("nothing was dropped at %d bytes", most)
			}
			if files := removedFiles(t, dir); len(files) > 0 {
				t.Errorf("after %d commits, in segment %d, the lane holds %v", read, at, files)
			}
			if e := mustNext(t, r); e.Count() != 200 || e.Missing.Sum() > 0 {
				t.Errorf("after %d commits, in segment %d, the next has %d samples, missing %+v", read, at, e.Count(), e.Missing)
			}
		}
		_ = r.Close()
		_ = l.Close()
	}
}
