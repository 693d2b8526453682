//go:build unix

package disk

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// TestLockOfTheDead: when a process is killed while it starts a command, the child holds the
// lock until it executes the command. A new process waits for that, but not for a living
// process, and only for a limited time.
func TestLockOfTheDead(t *testing.T) {
	dead := exec.Command("/bin/sh", "-c", "exit 0")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		holder   int
		released time.Duration // after the start of the other; 0: never
		want     error
		waits    time.Duration // at most
	}{
		{"is gone soon", dead.Process.Pid, 300 * time.Millisecond, nil, 400 * time.Millisecond},
		{"has it for good", dead.Process.Pid, 0, ErrLocked, time.Second},
		{"lives", os.Getpid(), 300 * time.Millisecond, ErrLocked, 0},
		{"has not said who it is", 0, 300 * time.Millisecond, ErrLocked, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				held, err := os.Create(filepath.Join(dir, "lock"))
				if err != nil {
					t.Fatal(err)
				}
				defer held.Close()
				fmt.Fprintf(held, "%d\n", c.holder)
				if ok, err := tryLock(held); !ok || err != nil {
					t.Fatalf("%t %v", ok, err)
				}
				root, err := os.OpenRoot(dir)
				if err != nil {
					t.Fatal(err)
				}
				defer root.Close()
				began := time.Now()
				if c.released > 0 {
					time.AfterFunc(c.released, func() { held.Close() })
				}
				l, err := (&Root{root: root, path: dir}).Lock("lock")
				if took := time.Since(began); took > c.waits {
					t.Errorf("it waited for %s, more than %s", took, c.waits)
				}
				if !errors.Is(err, c.want) {
					t.Fatalf("%v, want %v", err, c.want)
				}
				if l == nil {
					return
				}
				if pid, err := os.ReadFile(filepath.Join(dir, "lock")); err != nil || string(pid) != fmt.Sprintf("%d\n", os.Getpid()) {
					t.Errorf("the lock is held by %q, %v", pid, err)
				}
				if err := l.Release(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
