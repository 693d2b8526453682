package wal

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hwsagent/wal/internal/segment"
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

// sameGlance fails the test unless Glance tells what it can of what Inspect does.
func sameGlance(t *testing.T, want Inspection) {
	t.Helper()
	got, err := Glance(want.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if got.Head != want.Head || got.Log != want.Log {
		t.Errorf("at a glance the head is %+v of log %v, want %+v of %v", got.Head, got.Log, want.Head, want.Log)
	}
	var segments []SegmentInspection
	for _, s := range want.Segments {
		segments = append(segments, SegmentInspection{Number: s.Number, Bytes: s.Bytes, NeededBy: s.NeededBy})
	}
	if diff := cmp.Diff(segments, got.Segments); diff != "" {
		t.Errorf("segments at a glance (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.Targets, got.Targets); diff != "" {
		t.Errorf("targets at a glance (-want +got):\n%s", diff)
	}
}

// A glance reads the segments only where the log ends and the targets are: what else is
// damaged, it does not see.
func TestGlanceReadsNoBacklog(t *testing.T) {
	l := openLog(t, Options{SegmentBytes: 4000})
	dir := l.base.Path()
	late, err := l.Reader("late", ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const commits, series = 300, 30
	for i := range commits {
		if err := commitFloats(l, series, int64(1000*(i+1)), float64(i)); err != nil {
			t.Fatal(err)
		}
	}
	at := deliver(t, late, commits/2)
	for _, c := range []interface{ Close() error }{late, l} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var read, total int64
	in, err := Inspect(dir, func(n, of int64) { read, total = n, of })
	if err != nil {
		t.Fatal(err)
	}
	if total == 0 || read != total {
		t.Errorf("the progress ends at %d of %d bytes", read, total)
	}
	sameGlance(t, in)
	for _, s := range in.Segments {
		// The next one tells where the segment ends.
		if s.Number == in.Head.Segment || s.Number >= at.Segment && s.Number <= at.Segment+1 {
			continue
		}
		path := filepath.Join(dir, segmentDir, segment.Name(s.Number))
		if err := os.WriteFile(path, bytes.Repeat([]byte{0xa5}, int(s.Bytes)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sameGlance(t, in)
	// On a slow machine the log has removed segments that were delivered.
	after, err := Inspect(dir)
	if err != nil || !slices.ContainsFunc(after.Segments, func(s SegmentInspection) bool { return s.Damaged > 0 }) {
		t.Fatalf("the fault did not take place: %+v, %v", after.Segments, err)
	}
	if _, err := Glance(t.TempDir()); err == nil {
		t.Error("an empty directory is taken for a log")
	}
}

// A segment that was begun and got no commit is passed over, and the end of the one before
// it is where its header says.
func TestGlanceAtASealedEnd(t *testing.T) {
	l := openLog(t, Options{})
	dir := l.base.Path()
	if err := commitFloats(l, 3, 1000, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Reader("late", ReaderOptions{StartAt: StartOldest}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	first := filepath.Join(dir, segmentDir, segment.Name(0))
	b, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	// What a failed commit left behind, disowned by the next segment's header.
	if err := os.WriteFile(first, append(b, b...), 0o600); err != nil {
		t.Fatal(err)
	}
	var c segment.Reader
	c.Reset(bytes.NewReader(b), 0, int64(len(b)), true)
	if f, err := c.Next(); err != nil || f != segment.FoundHeader {
		t.Fatal(f, err)
	}
	h := c.Header
	h.Number, h.PrevID, h.PrevEnd, h.Segment = 1, h.Segment, int64(len(b)), ID{1}
	var e encoder
	e.reset(1, 0)
	e.header(h)
	if err := os.WriteFile(filepath.Join(dir, segmentDir, segment.Name(1)), e.pages.Buf, 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := Inspect(dir)
	if err != nil {
		t.Fatal(err)
	}
	if in.Segments[0].Bytes != int64(len(b)) || in.Head.Commit != 1 {
		t.Fatalf("the fault did not take place: %+v", in)
	}
	sameGlance(t, in)
}

// Inspect shows the contents of a log beside the process that has it open, without such a
// process, and when it is damaged. It changes nothing.
func TestInspect(t *testing.T) {
	l := openLog(t, Options{SegmentBytes: 4000})
	dir := l.base.Path()
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
	sameGlance(t, inspectJSON(t, dir))
	for _, c := range []interface{ Close() error }{half, idle, l} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	check(inspectJSON(t, dir))

	// Damage is reported, and ends no inspection.
	path := filepath.Join(dir, segmentDir, segment.Name(1))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range savepointNames {
		if err := os.WriteFile(filepath.Join(dir, savepointDir, name), []byte("rubbish"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in := inspectJSON(t, dir)
	if s := in.Segments[1]; s.Damaged == 0 && s.Broken == 0 {
		t.Errorf("damaged segment: %+v", s)
	}
	if in.Problem == "" || len(in.Targets) != 0 {
		t.Errorf("damaged savepoints: %q, %+v", in.Problem, in.Targets)
	}
	if _, err := Inspect(t.TempDir()); err == nil {
		t.Error("an empty directory is taken for a log")
	}
}
