//go:build unix

package wal

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hwsagent/wal/queue"
)

// nextDescriptor is the lowest number that is free.
func nextDescriptor(t *testing.T) uint64 {
	t.Helper()
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return uint64(f.Fd())
}

// withDescriptors calls f with file descriptors below that number only.
func withDescriptors(t *testing.T, limit uint64, f func()) {
	t.Helper()
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	now := was
	now.Cur = limit
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &now); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
			t.Fatal(err)
		}
	}()
	f()
}

// TestRewindLeavesNoSegmentOpen: a lane that waits after Rewind holds no file, because a full disk would not get back the space of a
// segment that the log drops meanwhile.
func TestRewindLeavesNoSegmentOpen(t *testing.T) {
	l := openLog(t, Options{Dir: filepath.Join(t.TempDir(), "log")})
	defer l.Close()
	r := openReader(t, l, "a", ReaderOptions{})
	defer r.Close()
	if err := commitFloats(l, 3, 1, 1); err != nil {
		t.Fatal(err)
	}
	before := nextDescriptor(t)
	for range 2 {
		mustNext(t, r)
		if nextDescriptor(t) == before {
			t.Fatal("the lane has opened no segment")
		}
		r.Rewind()
		if got := nextDescriptor(t); got != before {
			t.Errorf("the next free descriptor after Rewind is %d, want %d", got, before)
		}
	}
}

// TestDroppedSegmentIsClosed: a lane stands in a segment, and no Next follows. Once the log drops the segment for its budget, the
// lane does not hold it open; the next entry is behind it, and the account adds up.
func TestDroppedSegmentIsClosed(t *testing.T) {
	l := openLog(t, Options{Dir: filepath.Join(t.TempDir(), "log"), SegmentBytes: 64 << 10, Settings: Settings{MaxBytes: 512 << 10}})
	defer l.Close()
	r := openReader(t, l, "a", ReaderOptions{})
	defer r.Close()
	if err := commitNoise(l, 200, 1); err != nil {
		t.Fatal(err)
	}
	before := nextDescriptor(t)
	stood := mustNext(t, r).End.Segment
	if nextDescriptor(t) == before {
		t.Fatal("the lane has opened no segment")
	}
	for i := int64(2); r.Ledger().Dropped[queue.Budget] == 0; i++ {
		if i > 2000 {
			t.Fatal("the log drops nothing")
		}
		if err := commitNoise(l, 200, i); err != nil {
			t.Fatal(err)
		}
	}
	if got := nextDescriptor(t); got != before {
		t.Errorf("the next free descriptor is %d after the segment was dropped, want %d", got, before)
	}
	if e := mustNext(t, r); e.End.Segment <= stood {
		t.Errorf("the next entry ends at %+v, want one behind segment %d", e.End, stood)
	}
	checkLedger(t, r)
}

// TestFewDescriptors opens and inspects a log with no file descriptor left, with one, and
// so on until they suffice: it fails by name, leaves none open, and changes nothing.
func TestFewDescriptors(t *testing.T) {
	o := Options{Dir: filepath.Join(t.TempDir(), "log")}
	l := openLog(t, o)
	r := openReader(t, l, "a", ReaderOptions{})
	if err := commitFloats(l, 3, 1, 1); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	// The runtime's own descriptors, which it opens with the first pipe.
	a, b, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	defer b.Close()

	free := nextDescriptor(t)
	for what, try := range map[string]func() error{
		"open": func() error {
			l, err := Open(o)
			if err == nil {
				err = l.Close()
			}
			return err
		},
		"inspect": func() error {
			in, err := Inspect(o.Dir)
			for _, s := range in.Segments {
				if err == nil && s.Problem != "" {
					err = errors.New(s.Problem)
				}
			}
			return err
		},
	} {
		failed := 0
		for limit := free; ; limit++ {
			var err error
			withDescriptors(t, limit, func() { err = try() })
			if now := nextDescriptor(t); now != free {
				t.Fatalf("%s: descriptor %d is free, %d was", what, now, free)
			}
			if err == nil {
				break
			}
			failed++
			if text := err.Error(); !strings.Contains(text, syscall.EMFILE.Error()) || failed > 50 {
				t.Fatalf("%s with %d descriptors: %v", what, limit-free, err)
			}
		}
		if failed < 3 {
			t.Errorf("%s: failed %d times", what, failed)
		}
	}
	again := openLog(t, o)
	if e := nextOf(t, openReader(t, again, "a", ReaderOptions{})); e.Count() != 3 || e.Missing != (queue.Outcome{}) {
		t.Errorf("afterwards the log has %+v", e)
	}
}

// The error names a file that cannot hold the lock.
func TestLockIsAPipe(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, lockName), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Open(Options{Dir: dir})
	if err == nil {
		_ = l.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "take lock") {
		t.Errorf("opened: %v", err)
	}
}
