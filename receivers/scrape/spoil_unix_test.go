//go:build unix

package scrape

import "golang.org/x/sys/unix"

// spoilFile puts a pipe at path, whose reader waits for a writer for ever.
func spoilFile(path string) error { return unix.Mkfifo(path, 0o600) }
