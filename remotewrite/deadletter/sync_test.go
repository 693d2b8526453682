package deadletter

import (
	"fmt"
	"syscall"
	"testing"
)

// An error of fsync that says that a directory is not durable is told; one that says that
// the file system has no such thing is none.
func TestUnsyncable(t *testing.T) {
	for err, want := range map[error]bool{
		nil: false, syscall.EIO: false, syscall.ENOSPC: false, syscall.EROFS: false,
		syscall.EINVAL: true, syscall.ENOTSUP: true,
		fmt.Errorf("sync: %w", syscall.EINVAL): true,
	} {
		if got := unsyncable(err); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}
