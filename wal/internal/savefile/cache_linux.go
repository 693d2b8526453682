package savefile

import (
	"syscall"

	"golang.org/x/sys/unix"

	"hwsagent/wal/internal/disk"
)

// uncache removes the synced pages of a file from the page cache. The kernel keeps the data of one large write in one large
// folio, and counts all of it as written whenever 512 bytes of it change (Linux 6.16 and later with ext4, earlier with XFS). After
// uncache, small writes load single pages. It is only advice (posix_fadvise(2), POSIX_FADV_DONTNEED), so errors are ignored.
func uncache(f disk.File) {
	c, ok := f.(syscall.Conn)
	if !ok {
		return // an in-memory file of a test
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return // not reached: the file is open
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.Fadvise(int(fd), 0, 0, unix.FADV_DONTNEED)
	})
}
