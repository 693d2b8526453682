package wal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"hwsagent/wal/internal/disk"
)

// Every directory that a start creates has its entry synced before anything is acknowledged,
// up to the first directory that was there before.
func TestOpenSyncsTheDirectoriesThatItCreates(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "a", "b", "log")
	for _, start := range []struct {
		what string
		want []string
	}{
		{"nothing is there", []string{top, filepath.Join(top, "a"), filepath.Join(top, "a", "b"), dir}},
		{"all is there, and its entries perhaps not durable", []string{filepath.Join(top, "a", "b"), dir}},
	} {
		var synced []string
		l, err := Open(Options{Dir: dir, syncPath: func(path string) error {
			if !slices.Contains(synced, path) {
				synced = append(synced, path)
			}
			return disk.SyncPath(path)
		}})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(synced, start.want) {
			t.Errorf("%s: synced %q, want %q", start.what, synced, start.want)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A directory whose entry cannot be made durable keeps the log from opening, with the path
// in the error; but not where the user or the file system cannot sync it at all.
func TestOpenWhereTheParentCannotBeSynced(t *testing.T) {
	for _, c := range []struct {
		cause   error
		refused bool
	}{
		{syscall.EIO, true}, {syscall.ENOSPC, true},
		{os.ErrPermission, false}, {syscall.EINVAL, false}, {errors.ErrUnsupported, false},
	} {
		fired := 0
		l, err := Open(Options{Dir: filepath.Join(t.TempDir(), "a", "log"), syncPath: func(path string) error {
			fired++
			return fmt.Errorf("sync %s: %w", path, c.cause)
		}})
		if fired == 0 || (err != nil) != c.refused || c.refused && !errors.Is(err, c.cause) {
			t.Errorf("%v: asked %d times, error %v", c.cause, fired, err)
		}
		if err == nil {
			_ = l.Close()
		}
	}
}
