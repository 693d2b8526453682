package savefile

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"hwsagent/wal/internal/segment"
)

// A savepoint file is an array of slots of one disk sector each, and a record is one or more consecutive slots. Two records never
// share a slot, so writing a record does not touch a sector of an older one. A slot is
//
//	magic (2), version (1), kind (1), sequence number (8), since (8), slots of the state (4), length (2), part (1), parts (1),
//	checksum of the slot (4), payload (up to 480)
//
// Numbers are big-endian, checksums are CRC-32C.
const (
	slotSize    = 512
	slotMagic   = "hw"
	slotVersion = 4
	slotHead    = 32
	slotPayload = slotSize - slotHead // bytes of a record that a slot holds
	maxParts    = 255                 // of one record

	// MaxBody bounds the body of a record, in bytes. The other half of a record is for names.
	MaxBody = maxParts / 2 * slotPayload

	stateFlag = 0x80 // in the byte of the kind
)

// kind is the kind of content of a record.
type kind uint8

const (
	kindTarget kind = iota + 1 // the state of a target
	kindRename                 // the same for a target that takes over the queue of another, which ends
	kindDrop                   // the end of a target's queue
	kindLog                    // a LogRecord
)

// header is what a slot says of its record and its file.
type header struct {
	kind  kind
	state bool // the record is part of the state with which the file begins, and was not appended later

	sequence uint64 // orders the records of both files
	since    uint64 // the sequence number of the first record of the file's state
	slots    uint32 // that the state takes
}

// slot is a decoded slot.
type slot struct {
	header
	good, blank bool // neither: damaged, or written in part
	part, parts int
	payload     []byte // part of the decoded bytes
}

// slotsFor is the number of slots for a payload of n bytes.
func slotsFor(n int) int { return max(1, (n+slotPayload-1)/slotPayload) }

// appendRecord appends the slots of a record, at most maxParts, to b.
func appendRecord(b []byte, h header, payload []byte) []byte {
	parts := slotsFor(len(payload))
	for part := range parts {
		p := payload[part*slotPayload : min(len(payload), (part+1)*slotPayload)]
		start := len(b)
		b = append(b, make([]byte, slotSize)...)
		c := b[start:]
		copy(c, slotMagic)
		c[2], c[3] = slotVersion, byte(h.kind)
		if h.state {
			c[3] |= stateFlag
		}
		binary.BigEndian.PutUint64(c[4:], h.sequence)
		binary.BigEndian.PutUint64(c[12:], h.since)
		binary.BigEndian.PutUint32(c[20:], h.slots)
		binary.BigEndian.PutUint16(c[24:], uint16(len(p)))
		c[26], c[27] = byte(part), byte(parts)
		copy(c[slotHead:], p)
		binary.BigEndian.PutUint32(c[slotHead-4:], checksum(c))
	}
	return b
}

// checksum covers the whole slot except the checksum itself.
func checksum(c []byte) uint32 {
	return crc32.Update(crc32.Checksum(c[:slotHead-4], segment.Castagnoli), segment.Castagnoli, c[slotHead:])
}

// FormatError means that this build cannot read the format of the files. Continuing without them would lose positions.
type FormatError struct{ problem string }

// Error gives the format of the files, and how to go on if there is a way.
func (e *FormatError) Error() string { return e.problem }

// decodeSlot decodes a slot of slotSize bytes. Damage is not an error.
func decodeSlot(b []byte) (s slot, err error) {
	switch {
	case segment.AllZero(b):
		return slot{blank: true}, nil
	case string(b[:2]) != slotMagic:
		return slot{}, nil
	case b[2] < slotVersion && binary.BigEndian.Uint32(b[20:]) == crc32.Checksum(b[:20], segment.Castagnoli): // as versions 2 and 3 had it
		return slot{}, &FormatError{"savepoints are of an earlier format, which this build does not read; nothing was changed: " +
			"run the hwsagent that wrote them until no target has anything pending, stop it, and start this one with another --storage.path"}
	case binary.BigEndian.Uint32(b[slotHead-4:]) != checksum(b):
		return slot{}, nil
	case b[2] > slotVersion:
		return slot{}, &FormatError{fmt.Sprintf("savepoints have format version %d, this build reads up to %d: use a newer hwsagent or another --storage.path", b[2], slotVersion)}
	}
	s = slot{
		header: header{
			kind: kind(b[3] &^ stateFlag), state: b[3]&stateFlag != 0,
			sequence: binary.BigEndian.Uint64(b[4:]), since: binary.BigEndian.Uint64(b[12:]), slots: binary.BigEndian.Uint32(b[20:]),
		},
		part: int(b[26]), parts: int(b[27]),
	}
	n := int(binary.BigEndian.Uint16(b[24:]))
	if s.good = n <= slotPayload && s.part < s.parts; s.good {
		s.payload = b[slotHead : slotHead+n]
	}
	return s, nil
}

// LogRecord is the state of the log as a whole.
type LogRecord struct {
	// Durable is the last durable commit of the log at that time. Without it, the loss of durable
	// samples at the end of the log would not be detected.
	Durable segment.Mark

	// Lost means that records of targets may be unreadable. Until the targets are known again, one without a record begins at the
	// oldest data.
	Lost bool
}

// appendLog appends the payload of a kindLog.
func appendLog(b []byte, l LogRecord) []byte {
	b = segment.AppendMark(b, l.Durable)
	if l.Lost {
		return append(b, 1)
	}
	return append(b, 0)
}

func decodeLog(b []byte) (l LogRecord, err error) {
	d := segment.Decoder{B: b}
	l.Durable = d.Mark()
	l.Lost = d.Byte() != 0
	if err := d.End(); err != nil {
		return LogRecord{}, err
	}
	return l, nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
