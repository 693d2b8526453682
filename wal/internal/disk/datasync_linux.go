package disk

import (
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// Sync makes contents and size durable, and not the time of the last change, which nothing rests on after a
// power cut: fdatasync(2). Where a record is written in place that spares the file system its own record of the inode.
func (f *realFile) Sync() error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err // not reached: only a file that was never opened has none
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		for failed = syscall.EINTR; failed == syscall.EINTR; { //nolint:errorlint // an errno as the system call gives it
			failed = unix.Fdatasync(int(fd))
		}
	})
	if failed != nil {
		return &fs.PathError{Op: "sync", Path: f.Name(), Err: failed}
	}
	return err
}
