package check

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"hwsagent/agent/config"
)

// TestCheckStorageInside: the check fails if the agent's user may not write to one of the directories inside the storage
// directory, and names it. It leaves no file behind.
func TestCheckStorageInside(t *testing.T) {
	cfg, _, err := config.LoadBytes("agent.yaml", nil, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	cfg.WAL.MinFreeBytes, cfg.WAL.MaxBytes = 1, 1<<20
	all := []string{"", "wal", "savepoints", inside, filepath.Join(inside, "mimir")}
	for _, closed := range append(slices.Clone(all), "lost+found") {
		t.Run(closed, func(t *testing.T) {
			dir := t.TempDir()
			for _, d := range append(slices.Clone(all), "lost+found") {
				if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			at := filepath.Join(dir, closed)
			if err := os.Chmod(at, 0o500); err != nil {
				t.Fatal(err)
			}
			g := asUser(t, func() Group { return checkStorage(t.Context(), cfg, dir, []string{inside, "not-yet"}) })
			g.judge()
			if err := os.Chmod(at, 0o700); err != nil { // so that it can be removed
				t.Fatal(err)
			}
			if closed == "lost+found" { // the agent does not use it
				if g.Result != OK {
					t.Errorf("%s: %+v", g.Result, g.Steps)
				}
			} else if s := worst(g); s.Result != Fail || !strings.Contains(s.Text, at+string(filepath.Separator)) || s.Try == "" {
				t.Errorf("%s, want a failure that names %s, and a remedy: %+v", g.Result, at, g.Steps)
			}
			_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
				if err != nil || !e.IsDir() {
					t.Errorf("left behind: %s (%v)", path, err)
				}
				return nil
			})
		})
	}
}

// asUser calls f without root's privilege to ignore modes of files.
func asUser(t *testing.T, f func() Group) Group {
	var g Group
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread ends with this goroutine
		h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err = unix.Capset(&h, &none[0]); err == nil {
			g = f()
		}
	}()
	<-done
	if err != nil {
		t.Fatal(err)
	}
	return g
}
