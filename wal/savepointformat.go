package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// newerSavepointError says that a newer build wrote the savepoint. Overwriting it
// would lose the position.
type newerSavepointError struct{ version byte }

func (e *newerSavepointError) Error() string {
	return fmt.Sprintf("savepoint has format version %d, this build reads up to %d: use a newer hwsagent or another --storage.path", e.version, savepointVersion)
}

// appendSlot appends the encoding of a slot to b.
func appendSlot(b []byte, seq uint64, st storedSavepoint) ([]byte, error) {
	start := len(b)
	b = append(b, slotMagic...)
	b = append(b, st.version())
	b = binary.BigEndian.AppendUint64(b, seq)
	b = append(b, 0, 0, 0, 0)
	b = appendSavepoint(b, st)
	binary.BigEndian.PutUint32(b[start+slotHeaderSize-4:], uint32(len(b)-start-slotHeaderSize))
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
	if len(b)-start > slotSize {
		return b[:start], fmt.Errorf("encode savepoint of %q: %w: %d ranges", st.Name, errSavepointTooLong, len(st.Done))
	}
	return b, nil
}

// decodeSlot decodes a slot, which has slotSize bytes.
func decodeSlot(b []byte) (seq uint64, st storedSavepoint, err error) {
	damaged := func(what string) (uint64, storedSavepoint, error) {
		return 0, storedSavepoint{}, fmt.Errorf("decode savepoint: %s: %w", what, errSavepointDamaged)
	}
	if len(b) < slotHeaderSize || string(b[:4]) != slotMagic {
		return damaged("no magic")
	}
	n := uint64(binary.BigEndian.Uint32(b[slotHeaderSize-4:]))
	if n > uint64(len(b)-slotHeaderSize-4) {
		return damaged("length")
	}
	end := slotHeaderSize + int(n)
	if crc32.Checksum(b[:end], castagnoli) != binary.BigEndian.Uint32(b[end:]) {
		return damaged("checksum")
	}
	if b[4] > savepointVersion {
		return 0, st, &newerSavepointError{b[4]}
	}
	seq = binary.BigEndian.Uint64(b[5:])
	if seq == 0 {
		return damaged("sequence number 0")
	}
	if st, err = decodeSavepoint(b[slotHeaderSize:end], b[4]); err != nil {
		return damaged(err.Error())
	}
	return seq, st, nil
}

// version is that of the oldest format which has room for what the savepoint says.
func (st *storedSavepoint) version() byte {
	if len(st.Done) > 1 {
		return savepointVersion
	}
	return savepointOneRange
}

func appendSavepoint(b []byte, st storedSavepoint) []byte {
	b = binary.AppendUvarint(b, uint64(len(st.Name)))
	b = append(b, st.Name...)
	b = binary.AppendVarint(b, st.LastOpen)
	b = appendMark(b, st.Start)
	b = appendMark(b, st.High)
	b = binary.AppendUvarint(b, uint64(len(st.Done)))
	for _, r := range st.Done {
		b = appendMark(appendMark(b, r.From), r.To)
		if st.version() > savepointOneRange {
			b = binary.AppendUvarint(appendMark(b, r.High), uint64(r.Shards))
		}
	}
	b = binary.AppendUvarint(b, st.Outcome.Delivered)
	b = binary.AppendUvarint(b, st.Outcome.Filtered)
	b = binary.AppendUvarint(b, uint64(len(st.Outcome.Dropped)))
	for _, n := range st.Outcome.Dropped {
		b = binary.AppendUvarint(b, n)
	}
	b = binary.AppendUvarint(b, uint64(st.Shards))
	// What follows is left out where it says nothing, so that builds that do not know it
	// can read that.
	adopted := st.Adopted != ""
	paused := st.Paused != 0 || adopted
	known := st.Durable != (Mark{}) || paused
	if st.Orphan > 0 || known {
		b = binary.AppendUvarint(b, uint64(st.Orphan))
	}
	if known {
		b = appendMark(b, st.Durable)
	}
	if paused {
		b = binary.AppendVarint(b, st.Paused)
	}
	if adopted {
		b = binary.AppendUvarint(b, uint64(len(st.Adopted)))
		b = append(b, st.Adopted...)
	}
	return b
}

func decodeSavepoint(b []byte, version byte) (storedSavepoint, error) {
	d := decoder{b: b}
	st := storedSavepoint{Name: string(d.bytes(d.uvarint())), LastOpen: d.varint()}
	st.Start = d.mark()
	st.High = d.mark()
	for n := d.uvarint(); n > 0 && d.err == nil; n-- {
		r := Range{From: d.mark(), To: d.mark()}
		if version > savepointOneRange {
			r.High, r.Shards = d.mark(), int(min(d.uvarint(), 1<<16))
		}
		st.Done = append(st.Done, r)
	}
	if n := len(st.Done); n > 0 {
		st.Done[n-1].High, st.Done[n-1].Shards = Mark{}, 0 // behind it, High says it
	}
	st.Outcome.Delivered = d.uvarint()
	st.Outcome.Filtered = d.uvarint()
	reasons := d.uvarint()
	for i := uint64(0); i < reasons && d.err == nil; i++ {
		// A reason that a newer build added counts as the last one, so that the ledger
		// still adds up.
		st.Outcome.Dropped[min(i, uint64(NumReasons)-1)] += d.uvarint()
	}
	if d.err == nil {
		st.Shards = int(min(d.uvarint(), 1<<16))
	}
	if d.err == nil && len(d.b) > 0 {
		st.Orphan = int64(min(d.uvarint(), maxOrphan))
	}
	if d.err == nil && len(d.b) > 0 {
		st.Durable = d.mark()
	}
	if d.err == nil && len(d.b) > 0 {
		st.Paused = d.varint()
	}
	if d.err == nil && len(d.b) > 0 {
		st.Adopted = string(d.bytes(d.uvarint()))
	}
	if d.err != nil {
		return storedSavepoint{}, d.err
	}
	if len(d.b) > 0 {
		return storedSavepoint{}, errors.New("bytes left over")
	}
	at := st.Start
	for _, r := range st.Done {
		if r.From.Commit < at.Commit || r.To.Commit < r.From.Commit || r.From.Total < at.Total || r.To.Total < r.From.Total {
			return storedSavepoint{}, errors.New("ranges out of order")
		}
		at = r.To
	}
	return st, nil
}

func appendMark(b []byte, m Mark) []byte {
	b = append(b, m.Log[:]...)
	b = append(b, m.SegmentID[:]...)
	b = binary.AppendVarint(b, int64(m.Segment))
	b = binary.AppendVarint(b, m.Offset)
	b = binary.AppendUvarint(b, m.Commit)
	return binary.AppendUvarint(b, m.Total)
}

func (d *decoder) mark() Mark {
	var m Mark
	copy(m.Log[:], d.bytes(uint64(len(m.Log))))
	copy(m.SegmentID[:], d.bytes(uint64(len(m.SegmentID))))
	m.Segment = int(d.varint())
	m.Offset = d.varint()
	m.Commit = d.uvarint()
	m.Total = d.uvarint()
	return m
}
