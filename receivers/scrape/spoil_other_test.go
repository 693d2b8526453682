//go:build !unix

package scrape

import "os"

// spoilFile puts a directory at path, which is no file either.
func spoilFile(path string) error { return os.Mkdir(path, 0o700) }
