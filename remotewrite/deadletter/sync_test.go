package deadletter

import (
	"fmt"
	"syscall"
	"testing"
)

// An fsync error that means that a directory is not durable is returned; one that means that
// the file system cannot sync directories is not.
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
