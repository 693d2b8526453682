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

// Look finds out whether a name still is that of an open file, and whether the file has its length.
func TestLook(t *testing.T) {
	d, err := Open(t.TempDir(), SyncPath)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	f, err := d.Open("a", os.O_RDWR|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("abc"), 0); err != nil {
		t.Fatal(err)
	}
	if info, err := d.Look("a", f); err != nil || info.Name != "a" || info.Size != 3 || info.ModTime.IsZero() {
		t.Errorf("its own name: %+v, %v", info, err)
	}
	path := filepath.Join(d.Path(), "a")
	if err := errors.Join(os.WriteFile(path+"b", []byte("abcd"), 0o600), os.Rename(path+"b", path)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Look("a", f); !errors.Is(err, ErrReplaced) {
		t.Errorf("replaced: %v", err)
	}
	if info, err := d.Look("a", nil); err != nil || info.Size != 4 {
		t.Errorf("any file: %+v, %v", info, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Look("a", f); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removed: %v", err)
	}
	if err := errors.Join(os.WriteFile(path, nil, 0o600), f.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Look("a", f); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a closed file: %v", err)
	}
}

// A directory that has the name of an open file is not a file that replaced it: the file cannot be written anew.
func TestLookAtADirectory(t *testing.T) {
	d, err := Open(t.TempDir(), SyncPath)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	f, err := d.Open("a", os.O_RDWR|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	path := filepath.Join(d.Path(), "a")
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Look("a", f); err == nil || errors.Is(err, ErrReplaced) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory: %v", err)
	}
}
