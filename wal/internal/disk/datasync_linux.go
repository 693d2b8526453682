package disk

import (
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// Sync makes contents and size durable with fdatasync(2). It leaves out the modification time, which the log does not need
// after a power cut. For a record written in place, this saves the file system a journal record of the inode.
func (f *realFile) Sync() error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err // not reached: the file is open
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
