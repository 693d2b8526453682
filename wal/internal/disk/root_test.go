package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var errDisk = errors.New("disk is broken")

// A path that is not a directory, has another directory by now, or has vanished is refused by name.
func TestDirectoryIsAnother(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(file, "below"), SyncPath); !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "name another one") {
		t.Errorf("below a file: %v", err)
	}
	was, err := os.Lstat(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openChecked(dir, was); !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "was replaced") {
		t.Errorf("replaced since it was checked: %v", err)
	}
	if _, err := openChecked(filepath.Join(dir, "gone"), was); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("gone since it was checked: %v", err)
	}
}

// brokenEntry is a directory entry whose Info fails.
type brokenEntry struct{ fs.DirEntry }

func (brokenEntry) Info() (fs.FileInfo, error) { return nil, errDisk }

// A file removed while its directory is listed is left out; other errors are returned.
func TestListWhileFilesGo(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if infos, err := regularFiles(entries); err != nil || len(infos) != 1 || infos[0].Name != "b" || infos[0].Size != 1 {
		t.Errorf("%+v, %v", infos, err)
	}
	if _, err := regularFiles([]fs.DirEntry{brokenEntry{entries[1]}}); !errors.Is(err, errDisk) {
		t.Error(err)
	}
}
