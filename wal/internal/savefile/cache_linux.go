package savefile

import (
	"syscall"

	"golang.org/x/sys/unix"

	"hwsagent/wal/internal/disk"
)

// uncache takes the synced pages of a file out of the page cache. The kernel keeps what one large write brought in one large
// folio, and counts all of it as written whenever 512 bytes of it change (Linux 6.16 and later with ext4, earlier with XFS). After
// this, small writes bring in single pages. It is advice (posix_fadvise(2), POSIX_FADV_DONTNEED): an error changes nothing.
func uncache(f disk.File) {
	c, ok := f.(syscall.Conn)
	if !ok {
		return // a file of a test, in memory
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return // not reached: the file is open
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.Fadvise(int(fd), 0, 0, unix.FADV_DONTNEED)
	})
}
