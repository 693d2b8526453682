package segment_test

import (
	"bytes"
	"runtime"
	"testing"

	"hwsagent/wal/internal/segment"
	"hwsagent/wal/internal/segmenttest"
)

// readCommits reads so many commits.
func readCommits(t *testing.T, r *segment.Reader, n int) {
	t.Helper()
	for n > 0 {
		switch found, err := r.Next(); {
		case err != nil:
			t.Fatal(err)
		case found == segment.FoundCommit:
			n--
		case found == segment.FoundNothing:
			t.Fatalf("%d commits are missing", n)
		}
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A commit that announces many series is large, and those that follow are not: readers that have passed it do not
// keep room for another.
func TestReaderLetsGoOfTheRoomOfALargeCommit(t *testing.T) {
	const size, small, readers = 1 << 20, 40, 16
	s := segmenttest.New(0, segment.ID{1}, 0, 0)
	s.Compress = segment.FlagSnappy
	s.Commit(1, 0, 0, make([]byte, size))
	for range small {
		s.Commit(1, 0, 0, make([]byte, 1000))
	}
	all := make([]segment.Reader, readers)
	before := heap()
	for i := range all {
		all[i].Reset(bytes.NewReader(s.B), 0, int64(len(s.B)), true)
		readCommits(t, &all[i], 1)
	}
	if grown := heap() - before; grown < readers*size {
		t.Fatalf("a large commit took %d bytes of each reader, less than its size", grown/readers)
	}
	for i := range all {
		readCommits(t, &all[i], small)
	}
	if grown := heap() - before; grown > readers*size/4 {
		t.Errorf("after %d small commits each reader keeps %d bytes, more than a quarter of the large one", small, grown/readers)
	}
	runtime.KeepAlive(all)
}

// Commits of which every other one is small are read without an allocation for each.
func TestReaderKeepsRoomForCommitsThatComeAgain(t *testing.T) {
	const size, pairs = 1 << 20, 20
	s := segmenttest.New(0, segment.ID{1}, 0, 0)
	s.Compress = segment.FlagSnappy
	for range pairs {
		s.Commit(1, 0, 0, make([]byte, size))
		s.Commit(1, 0, 0, make([]byte, 1000))
	}
	var r segment.Reader
	from := bytes.NewReader(s.B)
	read := func() {
		r.Reset(from, 0, int64(len(s.B)), true)
		readCommits(t, &r, 2*pairs)
	}
	if n := testing.AllocsPerRun(3, read); n > 2 {
		t.Errorf("%v allocations for %d commits", n, 2*pairs)
	}
}
