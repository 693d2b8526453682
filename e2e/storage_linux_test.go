package e2e

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"hwsagent/internal/tools/tier"
)

// storageDir returns a directory for an agent's log. It is in memory where there is room, except in make nightly: the time that an fsync
// takes on a disk that others use decides whether an agent closes its log within the time of a stop, and so its exit code.
func storageDir(t *testing.T) string {
	t.Helper()
	const memory, room = "/dev/shm", 4 << 30
	var fs unix.Statfs_t
	if tier.Nightly() || unix.Statfs(memory, &fs) != nil || int64(fs.Bavail)*fs.Bsize < room {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "hwsagent-e2e-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
