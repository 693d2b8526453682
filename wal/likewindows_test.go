package wal

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/wal/internal/disk"
	"hwsagent/wal/internal/segment"
	"hwsagent/wal/queue"
)

// What is different on Windows, proven wherever the tests run: some names are no files there, and a directory cannot be synced.

// windowsRefuses tells why no file can have a name on Windows; nil if one can. See
// https://learn.microsoft.com/windows/win32/fileio/naming-a-file.
func windowsRefuses(name string) error {
	device, _, _ := strings.Cut(strings.ToUpper(name), ".")
	device = strings.TrimRight(device, " ")
	switch {
	case name == "":
		return errors.New("no name")
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || strings.ContainsRune(`<>:"/\|?*`, r) }):
		return errors.New("reserved character")
	case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
		return errors.New("last character is dropped")
	case slices.Contains([]string{"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"}, device), regexp.MustCompile(`^(COM|LPT)[0-9¹²³]$`).MatchString(device):
		return errors.New("name of a device")
	}
	return nil
}

// namedDir is a directory that notes which files it was asked for.
type namedDir struct {
	disk.Directory
	mu    sync.Mutex
	names map[string]bool
}

func (d *namedDir) note(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.names[name] = true
}

func (d *namedDir) Open(name string, flag int) (disk.File, error) {
	d.note(name)
	return d.Directory.Open(name, flag)
}

func (d *namedDir) Look(name string, f disk.File) (disk.Info, error) {
	d.note(name)
	return d.Directory.Look(name, f)
}

func (d *namedDir) Remove(name string) error {
	d.note(name)
	return d.Directory.Remove(name)
}

// A target may have a name that no file can have on Windows: no file of the log has the name of a target, whatever becomes
// of the target. (Dead letters are in directories named after targets: see agent.letterDir.)
func TestTargetsNamedAsNoFileCanBe(t *testing.T) {
	for _, name := range []string{"nul", "con", "AUX", "prn.backup", "com1", "LPT9", "com¹", "conin$", `a\b`, "c:", "host:9090/api/v1/write", "what?", "ends with a dot.", "..", "tab\t"} {
		t.Run(name, func(t *testing.T) {
			if windowsRefuses(name) == nil {
				t.Fatal("Windows takes this name")
			}
			asked := map[string]*namedDir{}
			o := memOptions(t, newMemDir(), newMemDir())
			wrap := o.wrap
			o.wrap = func(dir string, real disk.Directory) disk.Directory {
				if asked[dir] == nil {
					asked[dir] = &namedDir{Directory: wrap(dir, real), names: map[string]bool{}}
				}
				return asked[dir]
			}
			for life := range 2 {
				l := openLog(t, o)
				member := strings.ReplaceAll(name, "/", "-")
				if err := l.Enroll([]Enrolment{{Name: name}, {Name: "family", Family: true}}); err != nil {
					t.Fatal(err)
				}
				r := openReader(t, l, name, ReaderOptions{})
				if err := commitFloats(l, 3, int64(life), 1); err != nil {
					t.Fatal(err)
				}
				e := mustNext(t, r)
				if err := r.Reserve(e.End); err != nil {
					t.Fatal(err)
				}
				r.Advance(e.End, queue.Outcome{Delivered: e.Count()})
				if _, err := l.EnrollMember("family", member, l.head()); err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(l.Pause(name, life == 0), r.Close()); err != nil {
					t.Fatal(err)
				}
				if err := l.Enroll(nil); err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(l.Adopt(name, "heir"), l.Adopt("heir", name)); err != nil {
					t.Fatal(err)
				}
				if g, err := l.Forget(name); err != nil || g.Delivered != 3 {
					t.Fatalf("its queue ended with %+v, %v", g, err)
				}
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
			}
			for dir, d := range asked {
				for file := range d.names {
					if err := windowsRefuses(file); err != nil {
						t.Errorf("file %q in %s: %v", file, dir, err)
					}
					if _, isSegment := segment.ParseName(file); !isSegment && !slices.Contains(savepointNames[:], file) {
						t.Errorf("file %q in %s is named after a target", file, dir)
					}
				}
			}
			if len(asked[segmentDir].names) == 0 || len(asked[savepointDir].names) != 2 {
				t.Errorf("%v, %v: not every kind of file was written", asked[segmentDir].names, asked[savepointDir].names)
			}
		})
	}
}

// A directory that cannot be synced, as on Windows, costs nothing where a file's fsync makes its creation durable, which NTFS' journal
// does. The log never renames a file, which no such fsync would cover. Here the power fails after each operation of the disk.
func TestDirectoryThatCannotBeSynced(t *testing.T) {
	for _, interval := range []time.Duration{SyncAlways, time.Second} {
		moments := 0
		for at := 1; at == 1 || at <= moments; at++ {
			moments = max(moments, cutWithoutDirectorySync(t, interval, at))
		}
		if moments < 40 {
			t.Errorf("sync=%v: only %d moments", interval, moments)
		}
	}
}

// cutWithoutDirectorySync cuts the power after the at-th operation, and returns how many there were at least.
func cutWithoutDirectorySync(t *testing.T, interval time.Duration, at int) (operations int) {
	synctest.Test(t, func(t *testing.T) {
		segments, saves := newMemDir(), newMemDir()
		var durable Mark
		var reserved, enrolled bool
		var l *Log
		var mu sync.Mutex // the log's housekeeping strikes, too
		var left, leftSaves *memDir
		var fired bool
		powered := func() bool {
			mu.Lock()
			defer mu.Unlock()
			return left == nil
		}
		for _, d := range []*memDir{segments, saves} {
			d.journals = true
			d.struck = func(op, _ string) error {
				mu.Lock()
				defer mu.Unlock()
				if op == "syncdired" {
					fired = true // and did nothing
				}
				if operations++; operations == at {
					left, leftSaves = segments.crash(), saves.crash()
				}
				return nil
			}
		}
		note := func() { // what must survive, if the power has not failed yet
			if mark := l.index.durable(); powered() {
				durable = mark
			}
		}
		o := memOptions(t, segments, saves)
		o.SegmentBytes, o.Sync = 2000, interval
		l = openLog(t, o)
		r := openReader(t, l, "a", ReaderOptions{})
		enrolled = powered()
		for i := range 12 {
			if err := commitFloats(l, 20, int64(i), 1); err != nil {
				t.Fatal(err)
			}
			if interval != SyncAlways {
				time.Sleep(1010 * time.Millisecond)
			}
			note()
		}
		e := mustNext(t, r)
		if err := errors.Join(r.Reserve(e.End), l.targets.save()); err != nil {
			t.Fatal(err)
		}
		reserved = powered()
		if err := errors.Join(r.Close(), l.Close()); err != nil {
			t.Fatal(err)
		}
		if !fired {
			t.Fatal("no directory was to be synced")
		}
		if left == nil {
			return
		}
		left.journals, leftSaves.journals = true, true
		o = memOptions(t, left, leftSaves)
		l = openLog(t, o)
		what := fmt.Sprintf("sync=%v, a power cut after operation %d", interval, at)
		if head := l.head(); head.Total < durable.Total {
			t.Errorf("%s: %d samples of %d that were durable", what, head.Total, durable.Total)
		}
		switch target := l.targets.get("a"); {
		case enrolled && target == nil:
			t.Errorf("%s: the target is gone", what)
		case reserved && target.savepoint().High.Commit < e.End.Commit:
			t.Errorf("%s: the reservation is gone", what)
		}
	})
	return operations
}
