package wal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/wal/queue"
)

// A directory of the log is moved away under it, and perhaps another one put in its place:
// commits fail, since no later process would find them, what is in the log is still
// delivered, and all is well again when it is back.
func TestDirectoryMoved(t *testing.T) {
	for _, inner := range []string{"", segmentDir, savepointDir} {
		for name, after := range map[string]func(dir string) error{
			"moved":    func(string) error { return nil },
			"replaced": func(dir string) error { return os.Mkdir(dir, 0o700) },
			"link":     func(dir string) error { return os.Symlink(dir+".moved", dir) },
			"file":     func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
		} {
			t.Run(inner+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					o := Options{Dir: filepath.Join(t.TempDir(), "log")}
					l := openLog(t, o)
					r := openReader(t, l, "a", ReaderOptions{})
					if err := commitFloats(l, 10, 1, 1); err != nil {
						t.Fatal(err)
					}
					dir := filepath.Join(o.Dir, inner)
					if err := os.Rename(dir, dir+".moved"); err != nil {
						t.Fatal(err)
					}
					if err := after(dir); err != nil {
						t.Fatal(err)
					}
					time.Sleep(2 * time.Second)
					if err := commitFloats(l, 10, 2, 2); err == nil {
						t.Error("a commit is acknowledged that no other process would find")
					}
					if st := l.Status(); st.Err == nil || !strings.Contains(st.Err.Error(), dir) {
						t.Errorf("status %+v", st)
					}
					if e := nextEntry(t, r); e.Count() != 10 {
						t.Errorf("%d samples can be read", e.Count())
					} else {
						r.Advance(e.End, queue.Outcome{Delivered: 10})
					}

					if err := os.RemoveAll(dir); err != nil {
						t.Fatal(err)
					}
					if err := os.Rename(dir+".moved", dir); err != nil {
						t.Fatal(err)
					}
					time.Sleep(2 * time.Second)
					if err := commitFloats(l, 10, 3, 3); err != nil {
						t.Errorf("it is back: %v", err)
					}
					if err := r.Close(); err != nil {
						t.Error(err)
					}
					if err := l.Close(); err != nil {
						t.Error(err)
					}
					again := openLog(t, o)
					r = openReader(t, again, "a", ReaderOptions{})
					if e := nextEntry(t, r); e.Count() != 10 || e.Missing != (queue.Outcome{}) || e.Samples[0].V != 3 {
						t.Errorf("the next process finds %+v", e)
					}
					_ = r.Close()
					if err := again.Close(); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// Whoever is refused changes nothing, also where only an inner directory is unsafe.
func TestRefusedChangesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, savepointDir)); err != nil {
		t.Fatal(err)
	}
	if l, err := Open(Options{Dir: dir}); err == nil {
		t.Error("it is not refused")
		_ = l.Close()
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%v, %v: want the link only", files, err)
	}
}
