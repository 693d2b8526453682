package wal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"hwsagent/wal/internal/savefile"
)

// What a log's directory holds.
const (
	segmentDir   = "wal"        // the segments, named as tsdb/wlog names them
	savepointDir = "savepoints" // the files of package savefile
	lockName     = "lock"       // held by the process that owns the directory
)

// file is an open file. *osFile implements it over the operating system; tests wrap
// it to inject faults. Its methods may be called concurrently, Close included.
type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Sync() error               // makes contents and size durable
	Truncate(size int64) error // cuts or extends
}

// directory is one directory and the files directly in it: all that the log asks of
// a file system. Names have no separators.
type directory interface {
	// open opens a file with os.O_ flags; one that is created has mode 0600.
	open(name string, flag int) (file, error)
	remove(name string) error
	list() ([]fileInfo, error) // regular files only, in no particular order
	sync() error               // makes creations and removals durable
	free() (int64, error)      // bytes that this process may still write on the file system
	close() error
}

// fileInfo is one entry of a directory.
type fileInfo struct {
	name    string
	size    int64
	modTime time.Time
}

// errNotInPlace wraps why what is logged would not be found by another process.
var errNotInPlace = errors.New("directory is not in its place")

// openDirectory opens path, and creates it with mode 0700 if it is not there. It
// refuses a symbolic link, a directory of another user, and one that a group or
// others may write to: whoever controls the directory could feed samples to every
// target, or have the log written elsewhere.
//
// sync makes the entries of the directory at a path durable. Whatever openDirectory
// creates is durable when it returns.
func openDirectory(path string, sync func(path string) error) (*osDirectory, error) {
	if err := makeDirectory(path, sync); errors.Is(err, syscall.ENOTDIR) {
		return nil, fmt.Errorf("%w: %w, and so %s cannot be the directory: name another one", ErrUnsafe, err, path)
	} else if err != nil {
		return nil, fmt.Errorf("create directory: %w", err)
	}
	info, err := checkDirectory(path)
	if err != nil {
		return nil, err
	}
	return openChecked(path, info)
}

// makeDirectory creates the directory at path, and its parents, as far as they are not
// there. POSIX promises that a file survives a power cut only if the entries of all
// directories above it were synced, too: so the parent of each directory that is created is
// synced, and the parent of path in any case, because an earlier process may have died
// between the two. A parent that this user may not read, or whose file system cannot sync
// directories, is left to the kernel.
func makeDirectory(path string, sync func(path string) error) error {
	path = filepath.Clean(path)
	parent := filepath.Dir(path)
	err := os.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrNotExist) && parent != path {
		if err := makeDirectory(parent, sync); err != nil {
			return err
		}
		err = os.Mkdir(path, 0o700)
	}
	if errors.Is(err, fs.ErrExist) {
		if info, statErr := os.Stat(path); statErr == nil && !info.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: path, Err: syscall.ENOTDIR}
		}
	} else if err != nil {
		return err
	}
	err = sync(parent)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// openChecked opens the directory at path that info tells of, and no other one that may
// have come to stand there since.
func openChecked(path string, info fs.FileInfo) (*osDirectory, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open directory: %w", err)
	}
	if opened, err := root.Stat("."); err != nil || !os.SameFile(info, opened) {
		root.Close()
		return nil, fmt.Errorf("%w: %s was replaced while it was being opened", ErrUnsafe, path)
	}
	return &osDirectory{path: path, root: root, info: info}, nil
}

// checkDirectory says what is wrong with what is at path.
func checkDirectory(path string) (fs.FileInfo, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, fmt.Errorf("check directory: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%w: %s is not a directory but a symbolic link or a file: name the real directory", ErrUnsafe, path)
	}
	return info, checkOwner(path, info)
}

// osDirectory is a directory of the operating system. An [os.Root] keeps every
// access inside it.
type osDirectory struct {
	path string
	root *os.Root
	info fs.FileInfo // tells it from another one at the same path
}

// inPlace says what is wrong if another process would not find the directory at its path.
func (d *osDirectory) inPlace() error {
	const andNow = "put it back, or restart the agent"
	switch info, err := os.Lstat(d.path); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s was moved away or deleted under the running agent: %s", errNotInPlace, d.path, andNow)
	case err == nil && !os.SameFile(info, d.info):
		return fmt.Errorf("%w: something else is at %s than when the agent started: %s", errNotInPlace, d.path, andNow)
	}
	return nil // or it cannot be told now
}

func (d *osDirectory) open(name string, flag int) (file, error) {
	f, err := d.root.OpenFile(name, flag, 0o600)
	if err != nil {
		return nil, err
	}
	return &osFile{f}, nil
}

func (d *osDirectory) remove(name string) error { return d.root.Remove(name) }
func (d *osDirectory) close() error             { return d.root.Close() }
func (d *osDirectory) sync() error              { return syncDirectory(d.root) }
func (d *osDirectory) free() (int64, error)     { return freeSpace(d.path) }

func (d *osDirectory) list() ([]fileInfo, error) {
	entries, err := fs.ReadDir(d.root.FS(), ".")
	if err != nil {
		return nil, err
	}
	return regularFiles(entries)
}

// regularFiles leaves out what is no file, and files that have gone meanwhile.
func regularFiles(entries []fs.DirEntry) (infos []fileInfo, err error) {
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		infos = append(infos, fileInfo{name: e.Name(), size: info.Size(), modTime: info.ModTime()})
	}
	return infos, nil
}

// osFile is a file of the operating system.
type osFile struct{ *os.File }

// savepointFiles is a directory as package savefile asks for it.
type savepointFiles struct{ dir directory }

// Open opens a file.
func (s savepointFiles) Open(name string, flag int) (savefile.File, error) {
	return s.dir.open(name, flag)
}

// List lists the files.
func (s savepointFiles) List() (list []savefile.Info, err error) {
	infos, err := s.dir.list()
	for _, info := range infos {
		list = append(list, savefile.Info{Name: info.name, Size: info.size})
	}
	return list, err
}

// Sync makes the entries durable.
func (s savepointFiles) Sync() error { return s.dir.sync() }
