package wal

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A start writes once more what may not be durable, and leaves alone what is: after a clean stop everything, after a kill what
// savepoints say.
func TestStartWritesWhatIsInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, saves := newMemDir(), newMemDir()
		l := openLog(t, memOptions(t, d, saves))
		if err := l.Enroll([]Enrolment{{Name: "a"}}); err != nil {
			t.Fatal(err)
		}
		open := func(what string, want int) {
			t.Helper()
			writes := 0
			d.struck = func(op, _ string) error {
				if op == "write" {
					writes++
				}
				return nil
			}
			if l = openLog(t, memOptions(t, d, saves)); writes != want {
				t.Errorf("after %s the start wrote %d times into segments, want %d", what, writes, want)
			}
			d.struck = nil
		}
		for v := range 9 {
			if err := commitFloats(l, 1000, int64(v), float64(v)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(3500 * time.Millisecond) // it is durable, and savepoints say so
		from := l.head().Offset
		if err := commitFloats(l, 3, 10, 10); err != nil {
			t.Fatal(err)
		}
		if to := l.head().Offset; from < 1<<13 || to-from > 4096 {
			t.Fatalf("the commit in doubt is from %d to %d", from, to)
		}
		d, saves = d.kill(), saves.kill()
		open("a kill", 1)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		open("a clean stop", 0)
	})
}

// A start finds commits that no fsync has confirmed, its own fsync fails, and the file system drops their pages, as XFS and btrfs do. Readers
// wait; once the disk works again, they get every commit, and so does a process after a power cut.
func TestStartHoldsWhatTheDiskDrops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		segments, saves := newMemDir(), newMemDir()
		l := openLog(t, memOptions(t, segments, saves))
		openReader(t, l, "a", ReaderOptions{StartAt: StartOldest})
		var want []float64
		for v := range 5 {
			if err := commitFloats(l, 3, int64(v), float64(v)); err != nil {
				t.Fatal(err)
			}
			want = append(want, float64(v))
		}
		segments, saves = segments.kill(), saves.kill()
		_ = l.Close()
		began, drops := time.Now(), 0
		broken := func() bool { return time.Since(began) < 10*time.Second }
		segments.forgets = true
		segments.fault = func(op string) (int, error) {
			if !broken() || op != "sync" && (op != "write" || drops == 0) {
				return 0, nil
			}
			if op == "sync" {
				drops++
			}
			return 0, errDisk
		}
		again := openLog(t, memOptions(t, segments, saves))
		defer again.Close()
		r := openReader(t, again, "a", ReaderOptions{StartAt: StartOldest})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if e, err := r.Next(ctx); err == nil || drops == 0 {
			t.Fatalf("with %d drops it reads %+v", drops, e)
		}
		time.Sleep(10 * time.Second)
		if got, missing := drain(t, again, r); !slices.Equal(got, want) || missing.Sum() > 0 {
			t.Errorf("it reads %v of %v, missing %+v", got, want, missing)
		}
		after := openLog(t, memOptions(t, segments.crash(), newMemDir()))
		defer after.Close()
		all := openReader(t, after, "all", ReaderOptions{StartAt: StartOldest})
		if got, missing := drain(t, after, all); !slices.Equal(got, want) || missing.Sum() > 0 {
			t.Errorf("after a power cut it reads %v of %v, missing %+v", got, want, missing)
		}
	})
}
