package savefile

import (
	"hwsagent/wal/internal/disk"
	"hwsagent/wal/internal/segment"
)

// Target is a target whose newest record the store keeps. The store calls its methods with its mutex held: they must not
// wait for the disk or call the store.
type Target interface {
	Name() string

	// Encode appends the body of a record to b, and marks it as written. ok is false, and body is b, if the target is gone,
	// or has not changed and always is false.
	Encode(b []byte, always bool) (body []byte, c Credit, ok bool)

	// Unwritten means that the last encoded body did not become a record.
	Unwritten()

	// RelyOn means that the record encoded with that Credit.Acked is durable.
	RelyOn(acked segment.Mark)
}

// Credit describes an encoded record.
type Credit struct {
	First bool         // this is the target's first record
	Acked segment.Mark // older segments may be deleted once the record is durable
}

// Directory is the directory with the two files, with the operations that the store needs.
type Directory interface {
	Open(name string, flag int) (disk.File, error) // with os.O_ flags
	List() ([]disk.Info, error)                    // regular files only, in no particular order
	Look(name string, f disk.File) (disk.Info, error)
	Sync() error // makes creations durable
}
