package wal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hwsagent/wal/internal/segment"
	"hwsagent/wal/internal/segmenttest"
	"hwsagent/wal/queue"
)

func TestOneProcessHasTheDirectory(t *testing.T) {
	l := openLog(t, Options{})
	_, err := Open(Options{Dir: l.base.Path()})
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("error = %v, want ErrLocked with the process' number", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	again := openLog(t, Options{Dir: l.base.Path()})
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func TestUnsafeDirectories(t *testing.T) {
	const beside = "beside" // of Options.Beside
	for _, inner := range []string{"", segmentDir, savepointDir, beside} {
		for name, spoil := range map[string]func(t *testing.T, dir string) error{
			"writable by others":    func(_ *testing.T, dir string) error { return os.Chmod(dir, 0o702) },
			"writable by the group": func(_ *testing.T, dir string) error { return os.Chmod(dir, 0o720) },
			"symbolic link": func(t *testing.T, dir string) error {
				if err := os.Remove(dir); err != nil {
					return err
				}
				return os.Symlink(t.TempDir(), dir)
			},
			"foreign": func(t *testing.T, dir string) error {
				if os.Geteuid() != 0 {
					t.Skip("needs root to give a directory away")
				}
				return os.Chown(dir, 12345, 12345)
			},
		} {
			t.Run(inner+"/"+name, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "log")
				if err := os.MkdirAll(filepath.Join(dir, inner), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := spoil(t, filepath.Join(dir, inner)); err != nil {
					t.Fatal(err)
				}
				if l, err := Open(Options{Dir: dir, Beside: []string{"none", beside}}); !errors.Is(err, ErrUnsafe) {
					t.Errorf("error = %v, want one that says what is unsafe", err)
					if l != nil {
						_ = l.Close()
					}
				}
			})
		}
	}
}

func TestModes(t *testing.T) {
	l := openLog(t, Options{Dir: filepath.Join(t.TempDir(), "a", "b")})
	openReader(t, l, "a", ReaderOptions{})
	if err := commitFloats(l, 1, 1, 1); err != nil {
		t.Fatal(err)
	}
	files := 0
	err := filepath.Walk(l.base.Path(), func(path string, info os.FileInfo, err error) error {
		want := os.FileMode(0o600)
		if info.IsDir() {
			want = 0o700
		} else {
			files++
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
		return err
	})
	if err != nil || files != 4 {
		t.Errorf("%d files, %v: want lock, segment and two of savepoints", files, err)
	}
}

func TestClosed(t *testing.T) {
	l := openLog(t, Options{Registerer: prometheus.NewRegistry()})
	r := openReader(t, l, "a", ReaderOptions{})
	next := make(chan error)
	go func() {
		_, err := r.Next(t.Context())
		next <- err
	}()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-next; !errors.Is(err, ErrClosed) {
		t.Errorf("Next: %v, want ErrClosed", err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if err := commitFloats(l, 1, 1, 1); !errors.Is(err, ErrClosed) {
		t.Errorf("Commit: %v, want ErrClosed", err)
	}
}

func TestMetrics(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	l := openLog(t, Options{Registerer: reg})
	if err := commitFloats(l, 7, 1, 1); err != nil {
		t.Fatal(err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "hwsagent_wal_") {
			t.Errorf("metric %s", f.GetName())
		}
		got[f.GetName()] = f.Metric[0].GetCounter().GetValue() + f.Metric[0].GetGauge().GetValue()
	}
	for name, want := range map[string]float64{
		"hwsagent_wal_appended_samples_total": 7, "hwsagent_wal_refused_samples_total": 0, "hwsagent_wal_series": 7,
		"hwsagent_wal_segments": 1, "hwsagent_wal_head_samples": 7, "hwsagent_wal_failing": 0,
	} {
		if got[name] != want {
			t.Errorf("%s = %v, want %v", name, got[name], want)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	again := openLog(t, Options{Dir: l.base.Path(), Registerer: reg})
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// TestFailingMetric reads the metric while the disk is full, and after it has space again.
func TestFailingMetric(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		segments, reg := newMemDir(), prometheus.NewPedanticRegistry()
		o := memOptions(t, segments, newMemDir())
		o.Registerer = reg
		l := openLog(t, o)
		defer l.Close()
		failing := func() float64 {
			t.Helper()
			families, err := reg.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range families {
				if f.GetName() == "hwsagent_wal_failing" {
					return f.Metric[0].GetGauge().GetValue()
				}
			}
			t.Fatal("there is no hwsagent_wal_failing")
			return 0
		}
		var full atomic.Bool
		segments.mu.Lock()
		segments.fault = func(op string) (int, error) {
			if full.Load() && (op == "write" || op == "create") {
				return 0, syscall.ENOSPC
			}
			return 0, nil
		}
		segments.mu.Unlock()
		for i, disk := range []bool{false, true, false} {
			full.Store(disk)
			time.Sleep(2500 * time.Millisecond) // the log tries again each second, and a commit not sooner than half a second after that
			err := commitFloats(l, 1, int64(i+1), 1)
			if (err != nil) != disk {
				t.Fatalf("commit %d with a full disk %v: %v", i, disk, err)
			}
			if got := failing(); (got == 1) != disk {
				t.Errorf("hwsagent_wal_failing is %v with a full disk %v", got, disk)
			}
			time.Sleep(time.Minute)
		}
	})
}

// TestPowerCutIsCounted takes a second of samples away that targets had acknowledged
// or knew of: their ledgers say so, whichever side of the cut they stood on, and
// before anything new is appended.
func TestPowerCutIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		segments, saves := newMemDir(), newMemDir()
		l := openLog(t, memOptions(t, segments, saves))
		fast := openReader(t, l, "fast", ReaderOptions{})
		slow := openReader(t, l, "slow", ReaderOptions{})
		commit := func(l *Log, ts int64) {
			t.Helper()
			if err := commitFloats(l, 10, ts, float64(ts)); err != nil {
				t.Fatal(err)
			}
		}
		commit(l, 1)
		commit(l, 2)
		ackAll(t, l, fast)
		e := nextEntry(t, slow)
		slow.Advance(e.End, queue.Outcome{Delivered: e.Count()})
		time.Sleep(1100 * time.Millisecond) // durable
		commit(l, 3)
		commit(l, 4)
		ackAll(t, l, fast)
		if err := l.targets.save(); err != nil { // durable, unlike the segment
			t.Fatal(err)
		}
		segments, saves = segments.crash(), saves.crash()
		_ = fast.Close()
		_ = slow.Close()
		_ = l.Close()

		for range 2 {
			l = openLog(t, memOptions(t, segments, saves))
			fast, slow = openReader(t, l, "fast", ReaderOptions{}), openReader(t, l, "slow", ReaderOptions{})
			ackAll(t, l, fast)
			ackAll(t, l, slow)
			if g := fast.Ledger(); !g.Balanced() || g.Appended != 40 || g.Delivered != 40 {
				t.Errorf("fast: %+v", g)
			}
			if g := slow.Ledger(); !g.Balanced() || g.Appended != 40 || g.Delivered != 20 || g.Dropped[queue.PowerCut] != 20 {
				t.Errorf("slow: %+v", g)
			}
			_ = fast.Close()
			_ = slow.Close()
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestHeals fills the disk for a long time: one empty file at most comes of it, and a
// second after there is room everything acknowledged is durable, without a Commit.
func TestHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemDir()
		l := openLog(t, memOptions(t, d, newMemDir()))
		full, tries := false, 0
		d.fault = func(op string) (int, error) {
			if full && op != "truncate" {
				tries++
				return 10, syscall.ENOSPC
			}
			return 0, nil
		}
		if err := commitFloats(l, 5, 1, 1); err != nil {
			t.Fatal(err)
		}
		d.mu.Lock()
		full = true
		d.mu.Unlock()
		for i := range 1000 {
			if err := commitFloats(l, 5, int64(2+i), 2); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("error = %v, want ENOSPC", err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		d.mu.Lock() // the log tries by itself, too
		if tries > 100 {
			t.Errorf("%d tries in 10 s", tries)
		}
		d.mu.Unlock()
		if n := d.files(); n > 2 {
			t.Errorf("%d files", n)
		}
		st := l.Status()
		if !errors.Is(st.Err, syscall.ENOSPC) || st.Refused != 5000 || time.Since(st.Since) < 9*time.Second {
			t.Errorf("status %+v", st)
		}
		d.mu.Lock()
		full = false
		d.mu.Unlock()
		time.Sleep(1001 * time.Millisecond)
		if st := l.Status(); st.Err != nil {
			t.Errorf("status %+v", st)
		}
		after := openLog(t, memOptions(t, d.crash(), newMemDir()))
		if got := readOldest(t, after); len(got) != 1 {
			t.Errorf("%d commits are durable, want 1", len(got))
		}
		_ = after.Close()
		_ = l.Close()
	})
}

// TestStatusOfAHangingDisk asks while a write hangs.
func TestStatusOfAHangingDisk(t *testing.T) {
	d := newMemDir()
	l := openLog(t, memOptions(t, d, newMemDir()))
	r := openReader(t, l, "a", ReaderOptions{})
	if err := commitFloats(l, 5, 1, 1); err != nil {
		t.Fatal(err)
	}
	hangs, release := make(chan struct{}), make(chan struct{})
	d.linger = func(op string) {
		if op == "write" {
			close(hangs)
			<-release
		}
	}
	done := make(chan error)
	go func() { done <- commitFloats(l, 5, 2, 2) }()
	<-hangs
	if st := l.Status(); st.Head.Total != 5 {
		t.Errorf("status %+v", st)
	}
	if got := nextEntry(t, r).Count(); got != 5 {
		t.Errorf("%d samples", got)
	}
	l.Reconfigure(Settings{Sync: SyncAlways})
	if err := l.targets.save(); err != nil {
		t.Error(err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A header of a newer format is refused also where damage lies before it.
func TestNewerFormatBehindDamage(t *testing.T) {
	w := writeLog(t)
	var s segmenttest.Builder
	newer := segment.AppendHeader(nil, segment.Header{Version: segment.Version, Log: ID{9}, Number: 3})
	newer[1]++
	s.Record(newer, 0)
	b := append([]byte(nil), w.bytes(3)...)
	clear(b[:segment.PageSize])
	copy(b[segment.PageSize:], s.B)
	segments, saves := w.dirs(harm{segment: map[string][]byte{segment.Name(3): b}})
	l, err := Open(w.options(segments, saves))
	if !errors.Is(err, segment.ErrOtherFormat) || !strings.Contains(err.Error(), segment.Name(3)) {
		t.Errorf("opened: %v", err)
	}
	if err == nil {
		_ = l.Close()
	}
}

// TestCreateErrorNamesThePath: the error of a commit that cannot create its segment names the whole path of the file.
func TestCreateErrorNamesThePath(t *testing.T) {
	l := openLog(t, Options{})
	path := filepath.Join(l.base.Path(), segmentDir, segment.Name(0))
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := commitFloats(l, 1, 1, 1); err == nil || !strings.Contains(err.Error(), "open "+path+": ") {
		t.Errorf("error = %v, want one that names %s", err, path)
	}
	_ = l.Close()
}
