// Package disk is all that a log asks of a file system: directories with files directly in them, and a lock. Tests put a
// disk in memory in its place, which fails on request and knows what a power cut may leave.
package disk

import (
	"io"
	"time"
)

// Directory is one directory and the files directly in it. Names have no separators. Its methods may be called concurrently.
type Directory interface {
	// Open opens a file with os.O_ flags; one that is created has mode 0600.
	Open(name string, flag int) (File, error)
	Remove(name string) error
	List() ([]Info, error) // regular files only, in no particular order
	Sync() error           // makes creations and removals durable
	Free() (int64, error)  // bytes that this process may still write on the file system
	Close() error
}

// File is an open file. Its methods may be called concurrently, Close included.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Sync() error               // makes contents and size durable
	Truncate(size int64) error // cuts or extends
}

// Info is one entry of a directory.
type Info struct {
	Name    string
	Size    int64 // bytes
	ModTime time.Time
}
