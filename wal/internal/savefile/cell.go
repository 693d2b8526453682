package savefile

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"hwsagent/wal/internal/segment"
)

// A savepoint file is an array of cells of one disk sector each, and a record is one or more
// consecutive cells. Two records never share a cell, so writing a record does not touch a
// sector of an older record. A cell is
//
//	identity (24 bytes), part (1), parts (1), length of the payload (2), count (4), checksum of the cell (4),
//	payload (up to 452), the identity again
//
// and an identity is
//
//	magic (2), version (1), kind (1), generation (8), sequence number (8), checksum (4)
//
// Each cell has the identity twice, each with a checksum, so that a cell that was written in part is distinguished from a damaged one.
// Numbers are big-endian, checksums are CRC-32C.
const (
	cellSize     = 512
	cellMagic    = "hw"
	cellVersion  = 3
	identitySize = 24
	cellHead     = identitySize + 12
	cellPayload  = cellSize - cellHead - identitySize // bytes of a record that a cell holds
	maxCells     = 255                                // of one record

	// MaxBody bounds the body of a record, in bytes. The other half of a record is for names.
	MaxBody = maxCells / 2 * cellPayload

	snapshotFlag = 0x80 // in the byte of the kind
)

// recordKind is the kind of content of a savepoint record.
type recordKind uint8

const (
	kindTarget recordKind = iota + 1 // the state of a target
	kindRename                       // the same for a target that takes over the queue of another, which ends
	kindDrop                         // the end of a target's queue
	kindLog                          // a LogRecord
)

// identity identifies the record of a cell.
type identity struct {
	kind recordKind

	// snapshot means that the record is part of the snapshot, and was not appended later.
	snapshot bool

	// generation is the number of the file's snapshot. Cells with a smaller one are left over
	// from an earlier use of the file.
	generation uint64

	// sequence orders the records of both files: for each target the greatest counts.
	sequence uint64
}

// cell is a decoded cell.
type cell struct {
	identity
	known bool // the identity is readable
	whole bool // the whole cell is readable
	blank bool // the cell was never written completely

	part, parts int

	// count is the number of cells of the snapshot in a cell of it. In an appended cell it is the number of cells
	// of the file that were durable when this one was written.
	count int

	payload []byte // part of the decoded bytes
}

// cellsFor is the number of cells for a payload of n bytes.
func cellsFor(n int) int { return max(1, (n+cellPayload-1)/cellPayload) }

// appendRecord appends the cells of a record, at most maxCells, to b.
func appendRecord(b []byte, id identity, count int, payload []byte) []byte {
	parts := cellsFor(len(payload))
	for part := range parts {
		p := payload[part*cellPayload : min(len(payload), (part+1)*cellPayload)]
		start := len(b)
		b = append(b, make([]byte, cellSize)...)
		c := b[start:]
		id.put(c)
		id.put(c[cellSize-identitySize:])
		c[identitySize], c[identitySize+1] = byte(part), byte(parts)
		binary.BigEndian.PutUint16(c[identitySize+2:], uint16(len(p)))
		binary.BigEndian.PutUint32(c[identitySize+4:], uint32(count))
		copy(c[cellHead:], p)
		binary.BigEndian.PutUint32(c[cellHead-4:], cellChecksum(c))
	}
	return b
}

// put encodes the identity into the first identitySize bytes of b.
func (id identity) put(b []byte) {
	copy(b, cellMagic)
	b[2], b[3] = cellVersion, byte(id.kind)
	if id.snapshot {
		b[3] |= snapshotFlag
	}
	binary.BigEndian.PutUint64(b[4:], id.generation)
	binary.BigEndian.PutUint64(b[12:], id.sequence)
	binary.BigEndian.PutUint32(b[identitySize-4:], crc32.Checksum(b[:identitySize-4], segment.Castagnoli))
}

// cellChecksum covers the whole cell except the checksum itself.
func cellChecksum(c []byte) uint32 {
	return crc32.Update(crc32.Checksum(c[:cellHead-4], segment.Castagnoli), segment.Castagnoli, c[cellHead:])
}

// FormatError means that this build cannot read the format of the files. Continuing without them would lose positions.
type FormatError struct{ problem string }

func (e *FormatError) Error() string { return e.problem }

func newerFormat(version byte) error {
	return &FormatError{fmt.Sprintf("savepoints have format version %d, this build reads up to %d: use a newer hwsagent or another --storage.path", version, cellVersion)}
}

// earlierFormat is the error for savepoints of versions 1 and 2, or of the format with one file per target.
func earlierFormat() error {
	return &FormatError{"savepoints are of an earlier format, which this build does not read; nothing was changed: " +
		"run the hwsagent that wrote them until no target has anything pending, stop it, and start this one with another --storage.path"}
}

// isEarlier reports whether a cell has version 1, whose identity had 32 bytes.
func isEarlier(b []byte) bool {
	const size = 32
	return string(b[:2]) == cellMagic && b[2] == 1 && binary.BigEndian.Uint32(b[size-4:]) == crc32.Checksum(b[:size-4], segment.Castagnoli)
}

// decodeCell decodes a cell of cellSize bytes. Damage is not an error. A failed write may have left only the beginning of a
// new cell: that counts as the previous cell.
func decodeCell(b []byte) (c cell, err error) {
	if isEarlier(b) {
		return cell{}, earlierFormat()
	}
	const tail = cellSize - identitySize
	begins, ok, err := decodeIdentity(b[:identitySize])
	if err == nil {
		c.identity, c.known, err = decodeIdentity(b[tail:])
	}
	switch {
	case err != nil:
		return cell{}, err
	case segment.AllZero(b[tail:]):
		return cell{blank: true}, nil
	case !c.known:
		c.identity, c.known = begins, ok
	}
	n := int(binary.BigEndian.Uint16(b[identitySize+2:]))
	if !c.known || binary.BigEndian.Uint32(b[cellHead-4:]) != cellChecksum(b) || n > cellPayload {
		return c, nil
	}
	c.whole = true
	c.part, c.parts = int(b[identitySize]), int(b[identitySize+1])
	c.count = int(binary.BigEndian.Uint32(b[identitySize+4:]))
	c.payload = b[cellHead : cellHead+n]
	return c, nil
}

// decodeIdentity decodes an identity; ok is false if it is damaged. The error is a *FormatError.
func decodeIdentity(b []byte) (id identity, ok bool, err error) {
	if string(b[:2]) != cellMagic || binary.BigEndian.Uint32(b[identitySize-4:]) != crc32.Checksum(b[:identitySize-4], segment.Castagnoli) {
		return id, false, nil
	}
	switch {
	case b[2] > cellVersion:
		return id, false, newerFormat(b[2])
	case b[2] < cellVersion:
		return id, false, earlierFormat()
	}
	return identity{
		kind: recordKind(b[3] &^ snapshotFlag), snapshot: b[3]&snapshotFlag != 0,
		generation: binary.BigEndian.Uint64(b[4:]), sequence: binary.BigEndian.Uint64(b[12:]),
	}, true, nil
}
