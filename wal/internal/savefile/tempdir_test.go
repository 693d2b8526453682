package savefile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hwsagent/wal/internal/disk"
)

var errDisk = errors.New("disk is broken")

// tempDir is a directory of the operating system that fails on request.
type tempDir struct {
	path string

	// refuse is asked before each operation: open and the name, look and the name, read, write, sync, truncate, syncdir. An error fails it.
	refuse func(op string) error
}

func newTempDir(t testing.TB) *tempDir {
	return &tempDir{path: t.TempDir(), refuse: func(string) error { return nil }}
}

// failing refuses operations that begin with one of these words from now on.
func (d *tempDir) failing(ops ...string) {
	d.refuse = func(op string) error {
		for _, o := range ops {
			if strings.HasPrefix(op, o) {
				return errDisk
			}
		}
		return nil
	}
}

func (d *tempDir) Open(name string, flag int) (disk.File, error) {
	if err := d.refuse("open " + name); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(d.path, name), flag, 0o600)
	if err != nil {
		return nil, err
	}
	return &tempFile{f, d}, nil
}

func (d *tempDir) Look(name string, f disk.File) (disk.Info, error) {
	if err := d.refuse("look " + name); err != nil {
		return disk.Info{}, err
	}
	info, err := os.Stat(filepath.Join(d.path, name))
	if err != nil {
		return disk.Info{}, err
	}
	if f, ok := f.(*tempFile); ok {
		if opened, err := f.Stat(); err != nil || !os.SameFile(info, opened) {
			return disk.Info{}, errors.Join(err, disk.ErrReplaced)
		}
	}
	return disk.Info{Name: name, Size: info.Size(), ModTime: info.ModTime()}, nil
}

func (d *tempDir) Sync() error { return d.refuse("syncdir") }

type tempFile struct {
	*os.File
	d *tempDir
}

func (f *tempFile) ReadAt(b []byte, at int64) (int, error) {
	if err := f.d.refuse("read"); err != nil {
		return 0, err
	}
	return f.File.ReadAt(b, at)
}

func (f *tempFile) WriteAt(b []byte, at int64) (int, error) {
	if err := f.d.refuse("write"); err != nil {
		return 0, err
	}
	return f.File.WriteAt(b, at)
}

// Sync does not wait for the disk: no power is cut here.
func (f *tempFile) Sync() error { return f.d.refuse("sync") }

func (f *tempFile) Truncate(size int64) error {
	if err := f.d.refuse("truncate"); err != nil {
		return err
	}
	return f.File.Truncate(size)
}
