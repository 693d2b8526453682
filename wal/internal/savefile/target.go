package savefile

import (
	"hwsagent/wal/internal/disk"
	"hwsagent/wal/internal/segment"
)

// Target is one of those whose newest record the store keeps. Its methods are called with the store's mutex held: they do not
// wait for the disk, and call nothing of the store.
type Target interface {
	Name() string

	// Encode appends the body of a record to b, and takes it for written. It is not ok if there is nothing to write: the
	// target is gone, or has not changed, which does not matter if always is set. b is returned in any case.
	Encode(b []byte, always bool) (body []byte, c Credit, ok bool)

	// Unwritten says that the body encoded last did not become a record.
	Unwritten()

	// RelyOn says that the record which came with c is durable.
	RelyOn(c Credit)
}

// Credit is what a target may rely on once a record of it is durable.
type Credit struct {
	First bool            // there was no record before
	Acked segment.Mark    // what lies before may be deleted
	High  [2]segment.Mark // how far each lane may have sent; zero where there is no such lane
}

// Directory is the directory with the two files: all that the store asks of a file system.
type Directory interface {
	Open(name string, flag int) (disk.File, error) // with os.O_ flags
	List() ([]disk.Info, error)                    // regular files only, in no particular order
	Sync() error                                   // makes creations durable
}
