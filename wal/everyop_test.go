package wal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hwsagent/internal/tools/tier"
	"hwsagent/wal/internal/disk"
	"hwsagent/wal/internal/segment"
	"hwsagent/wal/queue"
)

// brokenDir fails what memDir does not: opening, listing, reading, closing and asking for
// free space. ask is called before each operation.
type brokenDir struct {
	disk.Directory
	ask func(op string) error
}

func (d brokenDir) Open(name string, flag int) (disk.File, error) {
	if err := d.ask("open " + name); err != nil {
		return nil, err
	}
	f, err := d.Directory.Open(name, flag)
	if err != nil {
		return nil, err
	}
	return &brokenFile{f, d.ask}, nil
}

func (d brokenDir) List() ([]disk.Info, error) {
	if err := d.ask("list"); err != nil {
		return nil, err
	}
	return d.Directory.List()
}

func (d brokenDir) Look(name string, f disk.File) (disk.Info, error) {
	if err := d.ask("look " + name); err != nil {
		return disk.Info{}, err
	}
	if broken, ok := f.(*brokenFile); ok {
		f = broken.File
	}
	return d.Directory.Look(name, f)
}

func (d brokenDir) Remove(name string) error {
	if err := d.ask("remove " + name); err != nil {
		return err
	}
	return d.Directory.Remove(name)
}

func (d brokenDir) Sync() error {
	if err := d.ask("syncdir"); err != nil {
		return err
	}
	return d.Directory.Sync()
}

func (d brokenDir) Free() (int64, error) {
	if err := d.ask("free"); err != nil {
		return 0, err
	}
	return d.Directory.Free()
}

func (d brokenDir) Close() error { return errors.Join(d.ask("closedir"), d.Directory.Close()) }

type brokenFile struct {
	disk.File
	ask func(op string) error
}

func (f *brokenFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.ask("read"); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, off)
}

func (f *brokenFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.ask("write"); err != nil {
		return 0, err
	}
	return f.File.WriteAt(p, off)
}

func (f *brokenFile) Sync() error {
	if err := f.ask("sync"); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *brokenFile) Close() error { return errors.Join(f.ask("close"), f.File.Close()) }

// TestEveryOperation fails each single operation on the files of a log in turn, in a life
// that opens it, reads it, lets segments go and inspects it: with an I/O error, and as if
// the file were gone. Whatever comes of it, nothing panics or hangs, the ledgers add up,
// and what is missing is counted.
func TestEveryOperation(t *testing.T) {
	t.Parallel()
	w := writeLog(t)
	noHeaders := harm{what: "headers of 1 and 2", segment: map[string][]byte{}, saves: map[string][]byte{"x": {1}}}
	for _, n := range []int{1, 2} {
		b := append([]byte(nil), w.bytes(n)...)
		b[20] ^= 1
		noHeaders.segment[segment.Name(n)] = b
	}
	lost := harm{what: "a file of savepoints", saves: map[string][]byte{w.newest(): {}}}
	for _, h := range []harm{{what: "nothing"}, noHeaders, lost} {
		for _, cause := range []error{errDisk, fs.ErrNotExist} {
			fired, step := 0, 1
			switch {
			case underRace:
				step = 8
			case !tier.Nightly() && (h.what != "nothing" || !errors.Is(cause, errDisk)):
				step = 5
			}
			for at := 1; ; at += step {
				var mu sync.Mutex // the log's goroutines ask as well
				ops, hit := 0, ""
				synctest.Test(t, func(t *testing.T) {
					w.live(t, h, func(op string) error {
						mu.Lock()
						defer mu.Unlock()
						if ops++; ops != at {
							return nil
						}
						hit = op
						return fmt.Errorf("%s: %w", op, cause)
					})
				})
				if t.Failed() {
					t.Fatalf("damaged: %s; %v at operation %d, %s", h.what, cause, at, hit)
				}
				if hit == "" {
					break
				}
				fired++
			}
			if t.Logf("damaged: %s; %v: %d operations failed", h.what, cause, fired); fired*step < 50 {
				t.Errorf("only %d faults fired", fired)
			}
		}
	}
}

// live is one life of a log in which something fails.
func (w *writtenLog) live(t *testing.T, h harm, ask func(op string) error) {
	segments, saves := w.dirs(h)
	o := w.options(nil, nil)
	o.wrap = func(name string, real disk.Directory) disk.Directory {
		_ = real.Close()
		if name == segmentDir {
			return brokenDir{segments, ask}
		}
		return brokenDir{saves, ask}
	}
	l, err := Open(o)
	if err != nil {
		return // it says so, and nothing is changed
	}
	for _, target := range []struct {
		name    string
		backlog int64 // that of "new" is less than the log
	}{{"all", 1 << 20}, {"half", 1 << 20}, {"new", 100 << 10}} {
		name := target.name
		r, err := l.Reader(name, ReaderOptions{StartAt: StartOldest, MaxBacklog: target.backlog})
		if err != nil {
			continue
		}
		for range 30 {
			if sp := r.Savepoint(); sp.Acked().Commit >= l.head().Commit {
				break
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			e, err := r.Next(ctx)
			cancel()
			if err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
			o := e.Missing
			o.Delivered = e.Count()
			r.Advance(e.End, o)
		}
		l.targets.enforceBacklog(l)
		if g := r.Ledger(); !g.Balanced() {
			t.Errorf("%s: ledger %+v", name, g)
		}
		_ = r.Close() // may say that the savepoint could not be saved
	}
	_ = commitFloats(l, 3, 1, 1) // may fail
	l.budget.configure(Settings{MaxBytes: 120 << 10})
	l.budget.enforce(0)
	l.budget.enforce(0)
	time.Sleep(3 * time.Second) // of the bubble: savepoints, syncs
	for _, tg := range l.targets.all() {
		if g := tg.ledger(l.head()); !g.Balanced() {
			t.Errorf("%s: ledger %+v", tg.name, g)
		}
	}
	_ = l.Close() // may say that something is not durable

	// The inspection of what is left.
	in := Inspection{}
	_ = in.read(brokenDir{segments, ask}, brokenDir{saves, ask}, func(in *Inspection, l *fileTail) { in.scanAll(l, nil) })
}

// A page that the disk refuses for good is given up, and what touches it counts as damage:
// the same whether the page breaks under a running log or before the log is opened.
func TestUnreadablePage(t *testing.T) {
	w := writeLog(t)
	for _, when := range []string{"after Open", "before Open"} {
		for n := range 4 {
			for page := range int64(2) {
				what := fmt.Sprintf("segment %d, page %d unreadable %s", n, page, when)
				synctest.Test(t, func(t *testing.T) {
					segments, saves := w.dirs(harm{})
					fired := 0
					unreadable := func(name string, off int64) error {
						if name == segment.Name(n) && off/segment.PageSize == page {
							fired++
							return errDisk
						}
						return nil
					}
					if when == "before Open" {
						segments.unreadable = unreadable
					}
					l, err := Open(w.options(segments, saves))
					if err != nil {
						t.Fatal(err)
					}
					defer l.Close()
					segments.unreadable = unreadable
					r := openReader(t, l, "all", ReaderOptions{})
					if err := commitFloats(l, 3, 1, 1); err != nil {
						t.Fatal(err)
					}
					h := w.replaced(what, n, nil, page*segment.PageSize, (page+1)*segment.PageSize)
					missing := w.compare(l, r, h, w.commits)
					if g := r.Ledger(); fired == 0 || !g.Balanced() || g.Pending != 0 || missing == 0 || g.Dropped[queue.Damage] != missing || g.GivenUp() != missing {
						t.Errorf("%s: refused %d times, ledger %+v", h.what, fired, g)
					}
				})
			}
		}
	}
}

// The error of Open, Inspect and a new target names the file or directory that cannot be used.
func TestWhatCannotBeOpened(t *testing.T) {
	says := func(what string, err error, text string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want %q", what, err, text)
		}
	}
	dir := filepath.Join(t.TempDir(), "log")
	make := func(inner string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, inner), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	make(lockName) // a directory where the lock file should be
	_, err := Open(Options{Dir: dir})
	says("the lock is a directory", err, "lock")
	if err := os.Remove(filepath.Join(dir, lockName)); err != nil {
		t.Fatal(err)
	}
	make(segmentDir)
	_, err = Inspect(dir)
	says("no savepoints", err, "inspect savepoints")

	_, err = disk.Open("\x00", disk.SyncPath)
	says("no name", err, "create directory")
	says("no directory", disk.Check(filepath.Join(dir, "none")), "none")

	reg := prometheus.NewRegistry()
	first := openLog(t, Options{Registerer: reg})
	_, err = Open(Options{Dir: filepath.Join(t.TempDir(), "log"), Registerer: reg})
	says("metrics registered twice", err, "register metrics")

	_, err = first.Reader(strings.Repeat("X", 300), ReaderOptions{})
	says("a name that is too long", err, "too long")
	d, err := disk.Open(filepath.Join(t.TempDir(), "d"), disk.SyncPath)
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	says("a closed directory", d.Sync(), "closed")
	_, err = d.List()
	says("a closed directory", err, "closed")

	var id ID
	says("an ID", id.UnmarshalText([]byte("xyz")), "32 hex digits")
	if err := id.UnmarshalText([]byte(ID{7}.String())); err != nil || id != (ID{7}) {
		t.Errorf("%v, %v", id, err)
	}
	whole := segment.AppendHeader(nil, segment.Header{Version: segment.Version})
	_, err = segment.DecodeHeader(whole[:40])
	says("a short header", err, "shorter")
	first.index.fail(errDisk, time.Now())
	if _, err := reg.Gather(); err != nil {
		t.Error(err)
	}
	if a, b := (Position{Segment: 1, Offset: 5}), (Position{Segment: 1, Offset: 6}); !a.Before(b) || b.Before(a) || !a.Before(Position{Segment: 2, Offset: 0}) || a.String() != "00000001:5" {
		t.Error("positions are out of order")
	}
	if queue.Damage.String() != "damage" || queue.Reason(200).String() != "reason(200)" {
		t.Error("names of reasons")
	}
}
