//go:build !linux

package savefile

import "hwsagent/wal/internal/disk"

// uncache does nothing; see the implementation for Linux.
func uncache(disk.File) {}
