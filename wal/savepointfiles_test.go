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

// What the documentation of the package says of a slot, in bytes.
const (
	slotSize         = 512
	slotHead         = 32        // what stands before the payload
	minSavepointFile = 256 << 10 // the least length of a file
)

// ownedBy reports whether a slot begins the record of a target, and not one that ends it.
func ownedBy(slot []byte, name string) bool {
	d := segment.Decoder{B: slot[slotHead:slotSize]}
	return string(slot[:2]) == "hw" && slot[3]&0x7f == 1 && d.Text() == name && d.Err == nil
}

// newestSlot is where the newest record of a target begins in a file; -1 if it has none.
func newestSlot(b []byte, name string) (newest int) {
	newest = -1
	for at := 0; at+slotSize <= len(b); at += slotSize {
		if ownedBy(b[at:], name) && (newest < 0 || sequenceOf(b[at:]) > sequenceOf(b[newest:])) {
			newest = at
		}
	}
	return newest
}

func sequenceOf(slot []byte) uint64 { return binary.BigEndian.Uint64(slot[4:]) }

// newestFile is the file with the newest record.
func newestFile(d *memDir) (newest string) {
	top := uint64(0)
	for _, name := range savepointNames {
		for b := d.entries[name].data.bytes(); len(b) >= slotSize; b = b[slotSize:] {
			if n := sequenceOf(b); string(b[:2]) == "hw" && n >= top {
				newest, top = name, n
			}
		}
	}
	return newest
}

// setFormat adds to the format version of a slot.
func setFormat(slot []byte, add byte) {
	slot[2] += add
	sum := crc32.Update(crc32.Checksum(slot[:slotHead-4], segment.Castagnoli), segment.Castagnoli, slot[slotHead:slotSize])
	binary.BigEndian.PutUint32(slot[slotHead-4:], sum)
}

// earlierSlot is the beginning of a file of the format before.
func earlierSlot() []byte {
	b := make([]byte, slotSize)
	copy(b, "hw\x03\x81")
	binary.BigEndian.PutUint32(b[20:], crc32.Checksum(b[:20], segment.Castagnoli))
	return b
}

// savedTargets is what the files say of all targets.
type savedTargets struct {
	byName map[string]*queue.Stored
	log    savefile.LogRecord
	bad    int
}

// loadSavepoints is what a process finds in a directory.
func loadSavepoints(t testing.TB, d disk.Directory) savedTargets {
	t.Helper()
	found, err := savefile.Read(d, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s := savedTargets{byName: map[string]*queue.Stored{}, log: found.Log, bad: found.Bad}
	for name, body := range found.Targets {
		st, err := queue.DecodeSavepoint(body)
		if err != nil {
			t.Fatal(err)
		}
		s.byName[name] = &st
	}
	return s
}

// savedIn are the targets that have a savepoint, by name.
func savedIn(t testing.TB, d disk.Directory) []string {
	t.Helper()
	return slices.Sorted(maps.Keys(loadSavepoints(t, d).byName))
}

// namedIn are the targets that either file names since its state.
func namedIn(t *testing.T, d *memDir) []string {
	t.Helper()
	named := map[string]bool{}
	for _, file := range savepointNames {
		var newest uint64
		var slots [][]byte
		for b := d.entries[file].data.bytes(); len(b) >= slotSize; b = b[slotSize:] {
			if string(b[:2]) == "hw" {
				newest = max(newest, binary.BigEndian.Uint64(b[12:]))
				slots = append(slots, b[:slotSize])
			}
		}
		for _, s := range slots {
			const logKind, renameKind = 4, 2
			kind, part := s[3]&0x7f, s[26]
			if binary.BigEndian.Uint64(s[12:]) != newest || kind == logKind || part > 0 {
				continue
			}
			payload := segment.Decoder{B: s[slotHead:]}
			named[payload.Text()] = true
			if kind == renameKind { // it has the new name behind the old one
				named[payload.Text()] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(named))
}

// beginOther begins the other file.
func beginOther(t *testing.T, ts *targets) {
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
