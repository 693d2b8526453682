//go:build unix

package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// checkOwner refuses a directory that another user owns, or that others may write to.
func checkOwner(path string, info fs.FileInfo) error {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return &OwnerError{path, int(st.Uid), os.Geteuid()}
	}
	if perm := info.Mode().Perm(); perm&0o022 != 0 {
		return fmt.Errorf("%w: %s has mode %04o, so other users may have written to it: make sure that none has, then chmod 0700 it", ErrUnsafe, path, perm)
	}
	return nil
}

// syncDirectory makes the directory's entries durable.
func syncDirectory(root *os.Root) error { return syncAndClose(root.Open(".")) }

// SyncPath makes the entries of the directory at a path durable.
func SyncPath(path string) error { return syncAndClose(os.Open(path)) }

func syncAndClose(d *os.File, err error) error {
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// FreeSpace is the number of bytes that an unprivileged process may still write to path's file system.
func FreeSpace(path string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, fmt.Errorf("statfs %s: %w", path, err)
	}
	return int64(min(float64(st.Bavail)*float64(st.Bsize), math.MaxInt64/2)), nil // some network file systems report absurd sizes
}

// tryLock takes the lock on f, or returns false if another process has it. It ends
// with the process.
func tryLock(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// orphaned reports whether a process certainly no longer exists.
func orphaned(pid int) bool { return pid > 0 && errors.Is(unix.Kill(pid, 0), unix.ESRCH) }
