package wal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/wal/internal/segment"
	"hwsagent/wal/queue"
)

// forgetRecords damages every record of a target.
func forgetRecords(saves *memDir, name string) {
	for _, file := range savepointNames {
		saves.entries[file].data.edit(func(b []byte) {
			for ; len(b) >= slotSize; b = b[slotSize:] {
				if ownedBy(b, name) {
					b[slotHead] ^= 1
				}
			}
		})
	}
}

// failing makes operations of one kind fail.
func failing(d *memDir, ops ...string) {
	d.fault = func(op string) (int, error) {
		for _, o := range ops {
			if o == op {
				return 0, syscall.EIO
			}
		}
		return 0, nil
	}
}

// What the disk refuses of what people do with queues is their error, and changes nothing:
// the next time it works.
func TestManageOnABrokenDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		segments, saves := newMemDir(), newMemDir()
		o := memOptions(t, segments, saves)
		o.SegmentBytes = 1
		l := openLog(t, o)
		defer l.Close()
		if err := l.Enroll([]Enrolment{{Name: "e", Family: true}}); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if err := commitFor(l, int64(i+1)*1000, "a"); err != nil {
				t.Fatal(err)
			}
		}
		if err := scoutUp(t, l); err != nil {
			t.Fatal(err)
		}
		name := queue.Member("e", "a")
		if since := l.PausedSince("nobody"); !since.IsZero() {
			t.Errorf("a target that is not known is paused since %v", since)
		}
		if _, err := l.Scout("nobody"); !errors.Is(err, ErrNoTarget) {
			t.Errorf("a scout for nobody: %v", err)
		}
		if _, err := l.Skip("nobody", l.head()); !errors.Is(err, ErrNoTarget) {
			t.Errorf("skipped for nobody: %v", err)
		}

		segments.unreadable = func(string, int64) error { return syscall.EIO }
		if _, err := l.Before(t.Context(), name, time.UnixMilli(2500), func(_, _ int64) {}); !errors.Is(err, syscall.EIO) {
			t.Errorf("looked for what is old: %v", err)
		}
		segments.unreadable = nil
		s, err := l.Before(t.Context(), name, time.UnixMilli(2500), func(_, _ int64) {})
		if err != nil || s.Samples != 2 {
			t.Fatalf("found %+v, %v", s, err)
		}

		failing(saves, "write")
		if _, err := l.Skip(name, s.End); !errors.Is(err, syscall.EIO) {
			t.Errorf("skipped: %v", err)
		}
		if err := l.Release("e", "a"); !errors.Is(err, syscall.EIO) {
			t.Errorf("released: %v", err)
		}
		saves.fault = nil
		if _, err := l.Skip(name, s.End); err != nil {
			t.Fatal(err)
		}
		if a, _ := l.Account(name); a.Dropped[queue.Skipped] != 2 || a.Pending != 1 || !a.Balanced() {
			t.Errorf("the account is %+v", a)
		}
		if a, _ := openTargets(saves.crash(), targetsOptions{}); a.byName[name].ledger(l.head()).Dropped[queue.Skipped] != 2 {
			t.Error("what was skipped is not durable")
		}
		if err := l.Release("e", "a"); err != nil {
			t.Error(err)
		}
	})
}

// A member whose savepoint is unreadable gets another one, which is durable or an error.
func TestMemberSavepointLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		segments, saves := newMemDir(), newMemDir()
		l := openLog(t, memOptions(t, segments, saves))
		if err := l.Enroll([]Enrolment{{Name: "e", Family: true}}); err != nil {
			t.Fatal(err)
		}
		if err := commitFor(l, 1, "a"); err != nil {
			t.Fatal(err)
		}
		if err := scoutUp(t, l); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		forgetRecords(saves, queue.Member("e", "a"))
		l = openLog(t, memOptions(t, segments, saves))
		defer l.Close()
		if err := l.Enroll([]Enrolment{{Name: "e", Family: true}}); err != nil {
			t.Fatal(err)
		}
		failing(saves, "write")
		if _, err := l.EnrollMember("e", "a", Mark{Log: l.head().Log}); !errors.Is(err, syscall.EIO) {
			t.Errorf("enrolled without a savepoint: %v", err)
		}
		saves.fault = nil
		if _, err := l.EnrollMember("e", "a", Mark{Log: l.head().Log}); err != nil {
			t.Fatal(err)
		}
		if got := ownOf(t, l, "a"); len(got) != 1 {
			t.Errorf("the member gets %v", got)
		}
	})
}

// An archive that cannot be read to its end is an error, not a short one.
func TestArchiveOfABrokenDisk(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenArchive(dir, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of nothing: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, segmentDir), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenArchive(dir, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without savepoints: %v", err)
	}
	file := filepath.Join(dir, savepointDir)
	if err := os.Mkdir(file, 0o700); err != nil {
		t.Fatal(err)
	}
	if a, err := OpenArchive(dir, 0); err != nil || a.Head().Commit != 0 {
		t.Errorf("an empty one: %v", err)
	} else if err := a.Close(); err != nil {
		t.Error(err)
	}

	synctest.Test(t, func(t *testing.T) {
		segments, saves := newMemDir(), newMemDir()
		o := memOptions(t, segments, saves)
		o.SegmentBytes = 1
		l := openLog(t, o)
		openReader(t, l, "a", ReaderOptions{}) // keeps what is there
		for i := range 3 {
			if err := commitFloats(l, 5000, int64(i+1), float64(i)); err != nil { // more than a page
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		open := func() (*Archive, error) {
			a := &Archive{segments: segments}
			return a, a.open(saves, 0)
		}
		segments.unlisted = syscall.EIO
		if _, err := open(); !errors.Is(err, syscall.EIO) {
			t.Errorf("opened: %v", err)
		}
		segments.unlisted = nil
		// The disk refuses reads of the segments as often as a scan asks for a page, from any
		// one read on: there are reads that are not needed to be sure.
		refused := 0
		for call := 1; ; call++ {
			n := 0
			segments.unreadable = func(string, int64) error {
				if n++; n >= call && n < call+segment.ScanTries {
					return syscall.EIO
				}
				return nil
			}
			a, err := open()
			segments.unreadable = nil
			if err != nil {
				if refused++; !errors.Is(err, syscall.EIO) {
					t.Fatalf("read %d failed: %v", call, err)
				}
				continue
			}
			if a.Head().Commit != 3 {
				t.Errorf("read %d failed, and the archive ends with commit %d", call, a.Head().Commit)
			}
			segments.unreadable = func(string, int64) error { return syscall.EIO }
			if _, err := a.Next(); !errors.Is(err, syscall.EIO) {
				t.Errorf("what cannot be read is %v", err)
			}
			segments.unreadable = nil
			e, err := a.Next()
			if err != nil || e.End.Commit != 1 {
				t.Errorf("read %d failed, and it begins with %+v, %v", call, e, err)
			}
			if err := a.Close(); err != nil {
				t.Error(err)
			}
			if n < call {
				break
			}
		}
		if refused < 2 {
			t.Errorf("only %d reads are needed", refused)
		}
	})
}
