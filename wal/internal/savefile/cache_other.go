//go:build !linux

package savefile

// uncache would take the synced pages of a file out of the page cache, see Linux's.
func uncache(File) {}
