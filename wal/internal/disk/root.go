package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Errors that other errors wrap.
var (
	ErrLocked     = errors.New("directory is in use")
	ErrUnsafe     = errors.New("unsafe directory")              // another user may control it
	ErrNotInPlace = errors.New("directory is not in its place") // another process would not find its files
)

// OwnerError means that a directory belongs to another user than the one that runs this process. It is an [ErrUnsafe].
type OwnerError struct {
	Path        string
	Owner, Self int // user ids
}

// Error names both users, and how to give the directory to this process.
func (e *OwnerError) Error() string {
	return fmt.Sprintf("%v: %s belongs to uid %d, this process runs as uid %d: run it as that user, give it the directory (chown -R), or name another one", ErrUnsafe, e.Path, e.Owner, e.Self)
}

// Unwrap returns ErrUnsafe.
func (e *OwnerError) Unwrap() error { return ErrUnsafe }

// Open opens the directory at path, and creates it with mode 0700 if it does not exist. It
// refuses a symbolic link, a directory of another user, and one that a group or others
// may write to, because a user with such control could send samples to every target, or
// redirect the log to another place.
//
// sync makes the entries of the directory at a path durable. All directories that Open
// creates are durable when it returns.
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

// makeDirectory creates the directory at path and its missing parents. POSIX promises that a
// file survives a power cut only if the entries of all directories above it were synced too.
// So makeDirectory syncs the parent of each directory that it creates. It always syncs the
// parent of path, because an earlier process may have died after mkdir and before the sync.
// It does not sync a parent that this user may not read, or whose file system cannot sync
// directories.
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

// openChecked opens the directory at path only if it is still the one that info describes.
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

// Check returns an error if Open would refuse the directory at path.
func Check(path string) error {
	_, err := check(path)
	return err
}

// OpenExisting opens a directory for reading; it must exist.
func OpenExisting(path string) (*Root, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &Root{path: path, root: root}, nil
}

// check implements Check, and returns the FileInfo of the directory that it checked.
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

// Root is a Directory of the operating system. An [os.Root] keeps every access inside it.
type Root struct {
	path string
	root *os.Root
	info fs.FileInfo // distinguishes it from another directory at the same path
}

// InPlace returns an error if another process would not find the directory at its path.
func (d *Root) InPlace() error {
	const andNow = "put it back, or restart the agent"
	switch info, err := os.Lstat(d.path); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s was moved away or deleted under the running agent: %s", ErrNotInPlace, d.path, andNow)
	case err == nil && !os.SameFile(info, d.info):
		return fmt.Errorf("%w: something else is at %s than when the agent started: %s", ErrNotInPlace, d.path, andNow)
	}
	return nil // also if Lstat failed for another reason
}

// Path is the path at which the directory was opened.
func (d *Root) Path() string { return d.path }

// Open opens a file in the directory. Its error names the whole path.
func (d *Root) Open(name string, flag int) (File, error) {
	f, err := d.root.OpenFile(name, flag, 0o600)
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, &fs.PathError{Op: "open", Path: filepath.Join(d.path, name), Err: e.Err}
	}
	if err != nil {
		return nil, err
	}
	return &realFile{f}, nil
}

// Look describes the file of that name, which must be f unless f is nil.
func (d *Root) Look(name string, f File) (Info, error) {
	info, err := d.root.Lstat(name)
	if err != nil {
		return Info{}, err
	}
	if !info.Mode().IsRegular() {
		return Info{}, fmt.Errorf("%s is not a regular file: move it away", name) // so no file of ours can take the name
	}
	if f, ok := f.(*realFile); ok {
		opened, err := f.Stat()
		if err != nil {
			return Info{}, err
		}
		if !os.SameFile(info, opened) {
			return Info{}, ErrReplaced
		}
	}
	return Info{Name: name, Size: info.Size(), ModTime: info.ModTime()}, nil
}

// Remove removes a file.
func (d *Root) Remove(name string) error { return d.root.Remove(name) }

// Close closes the directory.
func (d *Root) Close() error { return d.root.Close() }

// Sync makes creations and removals durable, if the system can sync directories.
func (d *Root) Sync() error { return syncDirectory(d.root) }

// Free is the number of bytes that this process may still write on the file system.
func (d *Root) Free() (int64, error) { return FreeSpace(d.path) }

// List lists the regular files.
func (d *Root) List() ([]Info, error) {
	entries, err := fs.ReadDir(d.root.FS(), ".")
	if err != nil {
		return nil, err
	}
	return regularFiles(entries)
}

// regularFiles leaves out entries that are not regular files, and files removed meanwhile.
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
