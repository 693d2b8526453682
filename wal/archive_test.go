package wal

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hwsagent/wal/internal/segment"
	"hwsagent/wal/internal/segmenttest"
)

// readArchive reads the first value of each commit.
func readArchive(t *testing.T, dir string, after uint64) (values []float64, commits []uint64, a *Archive) {
	t.Helper()
	a, err := OpenArchive(dir, after)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}()
	last := int64(-1)
	for {
		e, err := a.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		values, commits = append(values, e.Samples[0].V), append(commits, e.End.Commit)
		read, total := a.Progress()
		if read < last || read > total {
			t.Fatalf("read %d of %d bytes, after %d", read, total, last)
		}
		last = read
	}
	return values, commits, a
}

// An archive has everything that the log keeps, delivered or not, beside the log that is
// written to; and from any commit on.
func TestArchive(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	o := Options{Dir: dir, SegmentBytes: 2000}
	o.Retain = 1 << 50
	l := openLog(t, o)
	r := openReader(t, l, "a", ReaderOptions{})
	var want []float64
	commit := func(n int) {
		for range n {
			v := float64(len(want))
			if err := commitFloats(l, 20, int64(v), v); err != nil {
				t.Fatal(err)
			}
			want = append(want, v)
		}
	}
	commit(60)
	ackAll(t, l, r)
	commit(5)
	values, commits, _ := readArchive(t, dir, 0)
	if !slices.Equal(values, want) || l.Status().Segments < 3 {
		t.Errorf("of %d commits in %d segments the archive has %v", len(want), l.Status().Segments, values)
	}
	for _, i := range []int{0, 17, 40, 64} {
		if values, _, _ := readArchive(t, dir, commits[i]); !slices.Equal(values, want[i+1:]) {
			t.Errorf("after commit %d it has %v", commits[i], values)
		}
	}
	// What is written while it is open is not in it; what is let go meanwhile is left out.
	a, err := OpenArchive(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, err := a.Next(); err != nil {
		t.Fatal(err)
	}
	commit(3)
	if err := os.Remove(filepath.Join(dir, segmentDir, segment.Name(1))); err != nil {
		t.Fatal(err)
	}
	n := 1
	for ; err == nil; n++ {
		_, err = a.Next()
	}
	if _, holes := a.Skipped(); !errors.Is(err, io.EOF) || n-1 >= 65 || holes != 1 || a.Head().Commit != commits[64] {
		t.Errorf("%v after %d commits, %d segments are missing, the head is %+v", err, n-1, holes, a.Head())
	}
	if err := errors.Join(r.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	if values, _, _ := readArchive(t, dir, commits[64]); !slices.Equal(values, want[65:]) {
		t.Errorf("at last it has %v", values)
	}
}

// Damage costs what it touches.
func TestArchiveOfDamagedLog(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenArchive(dir, 0); err == nil {
		t.Error("there is no log, and an archive of it")
	}
	l := openLog(t, Options{Dir: dir})
	r := openReader(t, l, "a", ReaderOptions{})
	for i := range 4000 {
		if err := commitFloats(l, 5, int64(i), float64(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(r.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, segmentDir, segment.Name(0)), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, 100), 2*segment.PageSize+500); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	values, _, a := readArchive(t, dir, 0)
	if bytes, _ := a.Skipped(); len(values) < 2000 || len(values) >= 4000 || bytes == 0 {
		t.Errorf("%d commits, %d bytes of damage", len(values), bytes)
	}
}

// TestArchiveOfNewerSegment: an archive is refused as a log is where the first segment was written by a later version, and damage
// has taken the header that says so at its beginning.
func TestArchiveOfNewerSegment(t *testing.T) {
	o := memOptions(t, newMemDir(), newMemDir())
	o.wrap, o.SegmentBytes = nil, 4*segment.PageSize
	noisyLog(t, o, 60)
	first := filepath.Join(o.Dir, segmentDir, segment.Name(0))
	b, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	var s segmenttest.Builder
	newer := segment.AppendHeader(nil, segment.Header{Version: segment.Version, Log: ID{9}, Number: 0})
	newer[1]++
	s.Record(newer, 0)
	clear(b[:segment.PageSize])
	copy(b[segment.PageSize:], s.B)
	if err := os.WriteFile(first, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenArchive(o.Dir, 0); !errors.Is(err, segment.ErrOtherFormat) || !strings.Contains(err.Error(), segment.Name(0)) {
		t.Errorf("opened: %v", err)
	}
}
