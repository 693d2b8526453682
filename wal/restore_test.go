package wal

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/wal/internal/segment"
	"hwsagent/wal/queue"
)

// noisyLog writes a log of some segments of several pages and returns their files.
func noisyLog(t *testing.T, o Options, commits int) {
	t.Helper()
	l := openLog(t, o)
	for i := range commits {
		if err := commitNoise(l, 1000, int64(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// readFirsts is the time of each commit that a new target gets, and what it misses.
func readFirsts(t *testing.T, l *Log) (times []int64, missing queue.Outcome) {
	t.Helper()
	r := openReader(t, l, "all", ReaderOptions{StartAt: StartOldest})
	for sp := r.Savepoint(); sp.Acked().Commit < l.head().Commit; sp = r.Savepoint() {
		e := nextEntry(t, r)
		if e.Count() > 0 {
			times = append(times, e.MinT)
		}
		o := e.Missing
		missing.Add(o)
		o.Delivered = e.Count()
		r.Advance(e.End, o)
	}
	if g := r.Ledger(); !g.Balanced() {
		t.Errorf("ledger %+v", g)
	}
	return times, missing
}

// TestOpenOverUnreadablePlaces opens logs of which the disk refuses to read a part:
// the rest is there, and the reader tells later commits from the contents of that part,
// even when these can be read again.
func TestOpenOverUnreadablePlaces(t *testing.T) {
	for _, tc := range []struct {
		name    string
		segment string
		from    int64
	}{
		{"header of an old segment", "00000001", 0},
		{"header of the newest segment", "00000003", 0},
		{"middle of the newest segment", "00000003", 2 * segment.PageSize},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newMemDir()
				o := memOptions(t, d, newMemDir())
				o.SegmentBytes = 200_000
				noisyLog(t, o, 80)
				if n := d.files(); n != 4 {
					t.Fatalf("%d segments, want 4", n)
				}
				fired := 0
				d.unreadable = func(name string, off int64) error {
					if name == tc.segment && off >= tc.from && off < tc.from+segment.PageSize {
						fired++
						return syscall.EIO
					}
					return nil
				}
				l := openLog(t, o)
				if fired == 0 {
					t.Error("nothing was unreadable")
				}
				if err := commitFloats(l, 10, 1000, 1); err != nil {
					t.Fatal(err)
				}
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
				d.unreadable = nil
				l = openLog(t, o)
				times, missing := readFirsts(t, l)
				if !slices.IsSorted(times) || len(times) < 40 || times[len(times)-1] != 1000 {
					t.Errorf("read %v", times)
				}
				for i := 1; i < len(times); i++ {
					if times[i] == times[i-1] {
						t.Errorf("read %d twice", times[i])
					}
				}
				if tc.segment == "00000001" && (len(times) != 81 || missing != queue.Outcome{}) {
					t.Errorf("read %d commits of 81, missing %+v", len(times), missing)
				}
				_ = l.Close()
			})
		})
	}
}

// A segment of another format is refused, with the way out, and nothing is changed.
func TestNewerFormatIsRefused(t *testing.T) {
	for version, says := range map[uint8]string{
		0: "another --storage.path", 1: "until no target has anything pending", segment.Version + 1: "use a newer hwsagent", 255: "use a newer hwsagent",
	} {
		d, saves := newMemDir(), newMemDir()
		o := memOptions(t, d, saves)
		noisyLog(t, o, 1)
		var p segment.Pages
		p.Fragments(segment.AppendHeader(nil, segment.Header{Version: version, Number: 1}), 0)
		d.entries["00000001"] = &inode{data: imageOf(p.Buf)}
		d.entries["00000002"] = &inode{data: imageOf(nil)} // which a start removes otherwise
		before, savesBefore := contentsOf(d), contentsOf(saves)
		if l, err := Open(o); !errors.Is(err, segment.ErrOtherFormat) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "00000001") {
			t.Errorf("version %d: %v", version, err)
			if l != nil {
				_ = l.Close()
			}
		}
		if !maps.EqualFunc(before, contentsOf(d), bytes.Equal) || !maps.EqualFunc(savesBefore, contentsOf(saves), bytes.Equal) {
			t.Errorf("version %d: something was changed", version)
		}
	}
}

// TestDropBeforeADamagedHeader drops a segment whose successor cannot say what it
// ended with.
func TestDropBeforeADamagedHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, saves := newMemDir(), newMemDir()
		o := memOptions(t, d, saves)
		o.SegmentBytes = 200_000
		l := openLog(t, o)
		r := openReader(t, l, "slow", ReaderOptions{})
		_ = r.Close()
		_ = l.Close()
		noisyLog(t, o, 80)
		d.entries["00000001"].data.edit(func(b []byte) { b[3] ^= 1 })
		o.MaxBytes = 600_000
		l = openLog(t, o)
		r = openReader(t, l, "slow", ReaderOptions{})
		time.Sleep(1100 * time.Millisecond)
		g := r.Ledger()
		if got := l.first(); got == 0 || g.Dropped[queue.Budget] == 0 || !g.Balanced() {
			t.Errorf("first segment %d, ledger %+v", got, g)
		}
		ackAll(t, l, r)
		if g := r.Ledger(); !g.Balanced() || g.Appended != 80_000 || g.Pending != 0 {
			t.Errorf("ledger %+v", g)
		}
		_ = r.Close()
		_ = l.Close()
	})
}

// TestGiantCommit lets a commit go that is larger than the budget, once there is
// something newer.
func TestGiantCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemDir()
		o := memOptions(t, d, newMemDir())
		o.MaxBytes = 100_000
		l := openLog(t, o)
		r := openReader(t, l, "a", ReaderOptions{})
		if err := commitNoise(l, 50_000, 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1100 * time.Millisecond) // sealed
		if err := commitNoise(l, 10, 2); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1100 * time.Millisecond) // let go
		if _, used := l.index.usage(); used > o.MaxBytes {
			t.Errorf("%d bytes used", used)
		}
		if g := r.Ledger(); !g.Balanced() || g.Dropped[queue.Budget] != 50_000 || g.Pending != 10 {
			t.Errorf("ledger %+v", g)
		}
		_ = r.Close()
		_ = l.Close()
	})
}

// TestMemoryIsBounded commits more than may be kept for logging again, in less than
// an interval: a sync is forced, and the memory given back.
func TestMemoryIsBounded(t *testing.T) {
	d := newMemDir()
	o := memOptions(t, d, newMemDir())
	o.Sync = time.Hour
	l := openLog(t, o)
	syncs := 0
	d.linger = func(op string) {
		if op == "sync" {
			syncs++
		}
	}
	for i := range 30 {
		if err := commitNoise(l, 20_000, int64(i)); err != nil {
			t.Fatal(err)
		}
		if got := l.writer.retainedBytes; got > retainBytes {
			t.Fatalf("%d bytes are kept", got)
		}
	}
	if syncs == 0 || syncs > 10 {
		t.Errorf("%d syncs", syncs)
	}
}

// TestUnlinkIsTriedAgain refuses to remove files for a while.
func TestUnlinkIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemDir()
		o := memOptions(t, d, newMemDir())
		o.SegmentBytes, o.Retain = 20_000, 0
		l := openLog(t, o)
		refuse := true
		d.fault = func(op string) (int, error) {
			if op == "remove" && refuse {
				return 0, syscall.EACCES
			}
			return 0, nil
		}
		for i := range 20 {
			if err := commitNoise(l, 200, int64(i)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(1100 * time.Millisecond)
		if n := d.files(); n < 3 {
			t.Errorf("%d files: nothing was refused", n)
		}
		d.mu.Lock()
		refuse = false
		d.mu.Unlock()
		time.Sleep(1100 * time.Millisecond)
		if n := d.files(); n > 2 {
			t.Errorf("%d files are left", n)
		}
		_ = l.Close()
	})
}
