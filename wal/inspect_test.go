package wal

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// inspectJSON is what a reader of the JSON gets.
func inspectJSON(t *testing.T, dir string) Inspection {
	t.Helper()
	in, err := Inspect(dir)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var back Inspection
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

// Inspect tells what is in a log beside the process that has it open, when nobody
// has, and when it is damaged; it changes nothing.
func TestInspect(t *testing.T) {
	l := openLog(t, Options{SegmentBytes: 4000})
	dir := l.base.path
	half, err := l.Reader("half", ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	idle, err := l.Reader("Idle", ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const commits, series = 300, 30
	for i := range commits {
		if err := commitFloats(l, series, int64(1000*(i+1)), float64(i)); err != nil {
			t.Fatal(err)
		}
	}
	at := deliver(t, half, commits/2)
	if err := l.targets.save(); err != nil {
		t.Fatal(err)
	}

	check := func(in Inspection) {
		t.Helper()
		if in.Head != l.head() || in.Log != l.head().Log || len(in.Segments) < 4 {
			t.Fatalf("head %+v, want %+v, of log %v, in %d segments", in.Head, l.head(), in.Log, len(in.Segments))
		}
		var samples uint64
		for i, s := range in.Segments {
			samples += s.Samples
			if s.Commits == 0 || s.Series != series || s.Damaged != 0 || s.Problem != "" || s.From.IsZero() || s.To.Before(s.From) {
				t.Errorf("segment %+v", s)
			}
			want := 1
			if s.Number >= at.Segment {
				want = 2
			}
			if len(s.NeededBy) != want {
				t.Errorf("segment %d of %d is needed by %v", i, len(in.Segments), s.NeededBy)
			}
		}
		if samples != commits*series {
			t.Errorf("%d samples", samples)
		}
		if len(in.Targets) != 2 || in.Targets[0].Name != "Idle" || in.Targets[1].Name != "half" {
			t.Fatalf("targets %+v", in.Targets)
		}
		for i, pending := range []uint64{commits * series, commits * series / 2} {
			g := in.Targets[i]
			if first := time.UnixMilli(1000 * (int64(g.Delivered)/series + 1)); !g.Oldest.Equal(first) {
				t.Errorf("the oldest sample that %s lacks is of %s, want %s", g.Name, g.Oldest, first)
			}
			if !g.Balanced || g.Pending != pending || g.Appended != commits*series || g.Delivered+pending != g.Appended || g.PendingBytes == 0 {
				t.Errorf("target %+v", g)
			}
		}
	}
	check(inspectJSON(t, dir))
	for _, c := range []interface{ Close() error }{half, idle, l} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	check(inspectJSON(t, dir))

	// Damage is told, not stumbled over.
	path := filepath.Join(dir, segmentDir, segmentName(1))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, savepointDir, "half"), []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	in := inspectJSON(t, dir)
	if s := in.Segments[1]; s.Damaged == 0 && s.Broken == 0 {
		t.Errorf("damaged segment: %+v", s)
	}
	if in.Targets[1].Problem == "" || len(in.Segments[0].NeededBy) != 2 {
		t.Errorf("damaged savepoint: %+v", in.Targets[1])
	}
	if _, err := Inspect(t.TempDir()); err == nil {
		t.Error("an empty directory is taken for a log")
	}
}
