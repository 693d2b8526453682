//go:build !linux

package savefile

import "hwsagent/wal/internal/disk"

// uncache would take the synced pages of a file out of the page cache, see Linux's.
func uncache(disk.File) {}
