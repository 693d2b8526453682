package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Errors that others wrap.
var (
	ErrLocked     = errors.New("directory is in use")
	ErrUnsafe     = errors.New("unsafe directory")              // somebody else may control it
	ErrNotInPlace = errors.New("directory is not in its place") // another process would not find what is in it
)

// Open opens the directory at path, and creates it with mode 0700 if it is not there. It
// refuses a symbolic link, a directory of another user, and one that a group or
// others may write to: whoever controls the directory could feed samples to every
// target, or have the log written elsewhere.
//
// sync makes the entries of the directory at a path durable. Whatever Open
// creates is durable when it returns.
func Open(path string, sync func(path string) error) (*Root, error) {
	if err := makeDirectory(path, sync); errors.Is(err, syscall.ENOTDIR) {
		return nil, fmt.Errorf("%w: %w, and so %s cannot be the directory: name another one", ErrUnsafe, err, path)
	} else if err != nil {
		return nil, fmt.Errorf("create directory: %w", err)
	}
	info, err := check(path)
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
func openChecked(path string, info fs.FileInfo) (*Root, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open directory: %w", err)
	}
	if opened, err := root.Stat("."); err != nil || !os.SameFile(info, opened) {
		root.Close()
		return nil, fmt.Errorf("%w: %s was replaced while it was being opened", ErrUnsafe, path)
	}
	return &Root{path: path, root: root, info: info}, nil
}

// Check says what is wrong with what is at path.
func Check(path string) error {
	_, err := check(path)
	return err
}

// OpenExisting opens a directory for reading; it must be there.
func OpenExisting(path string) (*Root, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &Root{path: path, root: root}, nil
}

// check is Check, and says which directory it was that it has seen.
func check(path string) (fs.FileInfo, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, fmt.Errorf("check directory: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%w: %s is not a directory but a symbolic link or a file: name the real directory", ErrUnsafe, path)
	}
	return info, checkOwner(path, info)
}

// Root is a directory of the operating system, and a Directory. An [os.Root] keeps every access inside it.
type Root struct {
	path string
	root *os.Root
	info fs.FileInfo // tells it from another one at the same path
}

// InPlace says what is wrong if another process would not find the directory at its path.
func (d *Root) InPlace() error {
	const andNow = "put it back, or restart the agent"
	switch info, err := os.Lstat(d.path); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s was moved away or deleted under the running agent: %s", ErrNotInPlace, d.path, andNow)
	case err == nil && !os.SameFile(info, d.info):
		return fmt.Errorf("%w: something else is at %s than when the agent started: %s", ErrNotInPlace, d.path, andNow)
	}
	return nil // or it cannot be told now
}

// Path is where it was opened.
func (d *Root) Path() string { return d.path }

// Open opens a file in it.
func (d *Root) Open(name string, flag int) (File, error) {
	f, err := d.root.OpenFile(name, flag, 0o600)
	if err != nil {
		return nil, err
	}
	return &realFile{f}, nil
}

// Remove removes a file.
func (d *Root) Remove(name string) error { return d.root.Remove(name) }

// Close lets the directory go.
func (d *Root) Close() error { return d.root.Close() }

// Sync makes creations and removals durable, where the system can do that.
func (d *Root) Sync() error { return syncDirectory(d.root) }

// Free is how many bytes this process may still write on the file system.
func (d *Root) Free() (int64, error) { return freeSpace(d.path) }

// List lists the regular files.
func (d *Root) List() ([]Info, error) {
	entries, err := fs.ReadDir(d.root.FS(), ".")
	if err != nil {
		return nil, err
	}
	return regularFiles(entries)
}

// regularFiles leaves out what is no file, and files that have gone meanwhile.
func regularFiles(entries []fs.DirEntry) (infos []Info, err error) {
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
		infos = append(infos, Info{Name: e.Name(), Size: info.Size(), ModTime: info.ModTime()})
	}
	return infos, nil
}

// realFile is a file of the operating system.
type realFile struct{ *os.File }
