//go:build unix

package agent

import (
	"math"

	"golang.org/x/sys/unix"
)

// freeBytes returns how much an ordinary user can still write at path.
func freeBytes(path string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, err
	}
	free := float64(st.Bavail) * float64(st.Bsize)
	return int64(min(free, math.MaxInt64/2)), nil
}
