// Package disk has the file-system operations that a log needs: flat directories, files and a lock. Tests replace it by a
// disk in memory, which fails on request and simulates power cuts.
package disk

import (
	"errors"
	"io"
	"time"
)

// ErrReplaced means that another file has the name of an open one.
var ErrReplaced = errors.New("another file has this name now")

// Directory is one directory and the files directly in it. Names have no separators. Its methods are safe for concurrent use.
type Directory interface {
	// Open opens a file with os.O_ flags; it creates files with mode 0600.
	Open(name string, flag int) (File, error)
	Remove(name string) error
	List() ([]Info, error) // regular files only, in no particular order

	// Look describes the file of that name. If f is not nil and is an open file that this directory returned, the name must
	// still be that of f: otherwise the error is [fs.ErrNotExist] or ErrReplaced.
	Look(name string, f File) (Info, error)

	Sync() error          // makes creations and removals durable
	Free() (int64, error) // bytes that this process may still write on the file system
	Close() error
}

// File is an open file. Its methods, including Close, are safe for concurrent use.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Sync() error               // makes contents and size durable
	Truncate(size int64) error // shortens or extends
}

// Info is one entry of a directory.
type Info struct {
	Name    string
	Size    int64 // bytes
	ModTime time.Time
}
