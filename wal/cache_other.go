//go:build !linux

package wal

// uncache would take the synced pages of a file out of the page cache, see Linux's.
func uncache(file) {}
