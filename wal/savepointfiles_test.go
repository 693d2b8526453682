package wal

import (
	"encoding/binary"
	"hash/crc32"
	"log/slog"
	"maps"
	"slices"
	"testing"

	"hwsagent/wal/internal/disk"
	"hwsagent/wal/internal/savefile"
	"hwsagent/wal/internal/segment"
	"hwsagent/wal/queue"
)

// savepointNames are the two files of savepoints.
var savepointNames = [2]string{"records.0", "records.1"}

// What the documentation of the package says of a cell, in bytes.
const (
	cellSize         = 512
	identitySize     = 24
	cellHead         = 36        // what stands before the payload
	minSavepointFile = 256 << 10 // the least length of a file
)

// ownedBy reports whether a cell begins the record of a target, and not one that ends it.
func ownedBy(cell []byte, name string) bool {
	d := segment.Decoder{B: cell[cellHead:cellSize]}
	return string(cell[:2]) == "hw" && cell[3]&0x7f == 1 && d.Text() == name && d.Err == nil
}

// setFormat adds to the format version of a cell, or of the first identity in it.
func setFormat(cell []byte, add byte) {
	cell[2] += add
	binary.BigEndian.PutUint32(cell[identitySize-4:], crc32.Checksum(cell[:identitySize-4], segment.Castagnoli))
}

// savedTarget is what the files say of one target.
type savedTarget struct {
	queue.Stored
	doubt bool
}

// savedTargets is what they say of all.
type savedTargets struct {
	byName     map[string]*savedTarget
	log        savefile.LogRecord
	damaged    int
	base       int
	generation uint64
}

// loadSavepoints is what a process finds in a directory.
func loadSavepoints(t testing.TB, d disk.Directory) savedTargets {
	t.Helper()
	found, err := savefile.Read(d, slog.New(slog.DiscardHandler), queue.DecodeSavepoint)
	if err != nil {
		t.Fatal(err)
	}
	s := savedTargets{byName: map[string]*savedTarget{}, log: found.Log, damaged: found.Damaged, base: found.Base, generation: found.Generation}
	for name, kept := range found.Targets {
		s.byName[name] = &savedTarget{kept.Value, kept.Doubt}
	}
	return s
}

// savedIn are the targets that have a savepoint, by name.
func savedIn(t testing.TB, d disk.Directory) []string {
	t.Helper()
	return slices.Sorted(maps.Keys(loadSavepoints(t, d).byName))
}

// namedIn are the targets that either file names since its last snapshot began.
func namedIn(t *testing.T, d *memDir) []string {
	t.Helper()
	named := map[string]bool{}
	for _, file := range savepointNames {
		var newest uint64
		var cells [][]byte
		for b := d.entries[file].data.bytes(); len(b) >= cellSize; b = b[cellSize:] {
			if string(b[:2]) == "hw" {
				newest = max(newest, binary.BigEndian.Uint64(b[4:]))
				cells = append(cells, b[:cellSize])
			}
		}
		for _, c := range cells {
			const logKind = 4
			kind, part := c[3]&0x7f, c[identitySize]
			if binary.BigEndian.Uint64(c[4:]) != newest || kind == logKind || part > 0 {
				continue
			}
			payload := segment.Decoder{B: c[cellHead:]}
			named[payload.Text()] = true
			if kind == 2 { // a rename has the new name behind the old one
				named[payload.Text()] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(named))
}

// compactNow writes a snapshot.
func compactNow(t *testing.T, ts *targets) {
	t.Helper()
	ts.store.Renew()
	if err := ts.save(); err != nil {
		t.Error(err)
	}
}

func targetNames(n int) (names []string) {
	for i := range n {
		names = append(names, "e/"+crashIndex(i))
	}
	slices.Sort(names)
	return names
}
