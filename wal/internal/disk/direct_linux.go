package disk

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Direct is a flag of [Directory.Open]: writes go to the disk past the page cache, in whole sectors of 512 bytes from memory of
// [Aligned] (open(2), O_DIRECT). Such a write is durable only after Sync, as any other. Open fails where the file system cannot
// do it.
const Direct = syscall.O_DIRECT

// takesSectors returns an error unless the file system says that it writes single sectors directly (statx(2), STATX_DIOALIGN: ext4
// and XFS since Linux 6.1). Others open files with O_DIRECT, too, but some of them write more then, not less.
func takesSectors(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err // not reached: the file is open
	}
	var st unix.Statx_t
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.Statx(int(fd), "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &st)
	})
	return cmp.Or(err, failed, suits(st.Mask&unix.STATX_DIOALIGN != 0, st.Dio_mem_align, st.Dio_offset_align))
}

// suits implements takesSectors. told says that the file system names the alignments, in bytes; 0 is one that writes through the
// page cache only.
func suits(told bool, memory, offset uint32) error {
	const sector = 512
	if !told || memory == 0 || alignment%memory != 0 || offset == 0 || sector%offset != 0 {
		return fmt.Errorf("direct writes of %d bytes: %w", sector, errors.ErrUnsupported)
	}
	return nil
}
