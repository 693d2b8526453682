package savefile

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"hash/fnv"

	"hwsagent/wal/internal/segment"
)

// A savepoint file is an array of cells of one disk sector each, and a record is one or more
// cells in a row. No cell holds bytes of two records, so writing a record touches no sector that
// an older record needs. A cell is
//
//	identity (32 bytes), part (1), parts (1), length of the payload (2), count (4), checksum of the cell (4),
//	payload (up to 436), the identity again
//
// and an identity is
//
//	magic (2), version (1), kind (1), generation (8), sequence number (8), owner (8), checksum (4)
//
// The identity is there twice, with a checksum each, so that a damaged cell still says whose it is.
// Numbers are big-endian, checksums are CRC-32C.
const (
	cellSize     = 512
	cellMagic    = "hw"
	cellVersion  = 1
	identitySize = 32
	cellHead     = identitySize + 12
	cellPayload  = cellSize - cellHead - identitySize // bytes of a record that a cell holds
	maxCells     = 255                                // of one record

	// MaxBody bounds the body of a record, in bytes. As much is left for names.
	MaxBody = maxCells / 2 * cellPayload

	snapshotFlag = 0x80 // in the byte of the kind
)

// recordKind says what a savepoint record holds.
type recordKind uint8

const (
	kindTarget recordKind = iota + 1 // what a target says
	kindRename                       // the same; the queue was that of another target, which it ends
	kindDrop                         // the end of a target's queue
	kindLog                          // what concerns no single target
)

// identity says which record a cell belongs to.
type identity struct {
	kind recordKind

	// snapshot says that the record was written when the file was begun, and not appended later.
	snapshot bool

	// generation is the number of the snapshot that the file began with. Cells with a smaller
	// one are left over from an earlier use of the file.
	generation uint64

	// sequence orders the records of both files: of two that speak of a target the greater one counts.
	sequence uint64

	owner uint64 // ownerOf the target's name; 0 if the record is not one target's
}

// cell is a decoded cell.
type cell struct {
	identity
	known bool // the identity could be read
	whole bool // so could everything else
	blank bool // the cell was never written, to its end

	part, parts int

	// count is the number of cells of the snapshot if this is one of them. In an appended cell it is how many
	// cells of the file were durable when this one was written.
	count int

	payload []byte // part of the decoded bytes
}

// ownerOf is the FNV-1a hash of a target's name.
func ownerOf(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // it never fails
	return h.Sum64()
}

// cellsFor is how many cells a payload of n bytes takes.
func cellsFor(n int) int { return max(1, (n+cellPayload-1)/cellPayload) }

// appendRecord appends the cells of a record, which has maxCells at most, to b.
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
	binary.BigEndian.PutUint64(b[20:], id.owner)
	binary.BigEndian.PutUint32(b[identitySize-4:], crc32.Checksum(b[:identitySize-4], segment.Castagnoli))
}

// cellChecksum covers everything in a cell but the checksum itself.
func cellChecksum(c []byte) uint32 {
	return crc32.Update(crc32.Checksum(c[:cellHead-4], segment.Castagnoli), segment.Castagnoli, c[cellHead:])
}

// FormatError says that the files are of a format that this build does not read. Going on without them would lose positions.
type FormatError struct{ problem string }

func (e *FormatError) Error() string { return e.problem }

func newerFormat(version byte) error {
	return &FormatError{fmt.Sprintf("savepoints have format version %d, this build reads up to %d: use a newer hwsagent or another --storage.path", version, cellVersion)}
}

// earlierFormat says that savepoints are of the format with one file for each target.
func earlierFormat() error {
	return &FormatError{"savepoints are of an earlier format, which this build does not read; nothing was changed: " +
		"run the hwsagent that wrote them until no target has anything pending, stop it, and start this one with another --storage.path"}
}

// decodeCell decodes a cell, which has cellSize bytes. Damage is no error. A write that the disk refused may have left the
// beginning of a cell: that counts as the cell which was there before.
func decodeCell(b []byte) (c cell, err error) {
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

// decodeIdentity decodes an identity; not ok if it is damaged. The error is a *FormatError.
func decodeIdentity(b []byte) (id identity, ok bool, err error) {
	if string(b[:2]) != cellMagic || binary.BigEndian.Uint32(b[identitySize-4:]) != crc32.Checksum(b[:identitySize-4], segment.Castagnoli) {
		return id, false, nil
	}
	if b[2] > cellVersion {
		return id, false, newerFormat(b[2])
	}
	return identity{
		kind: recordKind(b[3] &^ snapshotFlag), snapshot: b[3]&snapshotFlag != 0,
		generation: binary.BigEndian.Uint64(b[4:]), sequence: binary.BigEndian.Uint64(b[12:]), owner: binary.BigEndian.Uint64(b[20:]),
	}, true, nil
}
