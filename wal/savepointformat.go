package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

const (
	// MaxControl bounds [Savepoint.Control], in bytes.
	MaxControl = 2048

	maxNameBytes = 245 // of a target's name as part of a path, see CheckName
	maxOrphan    = uint64(math.MaxInt64 / time.Millisecond)
)

// storedSavepoint is what a record says of a target.
type storedSavepoint struct {
	Name     string // of the target
	LastOpen int64  // when it was last known to be open, milliseconds since the epoch; for people
	Savepoint

	// Orphan is for how long an agent has run without this target, milliseconds.
	Orphan int64

	// Paused is since when sending is paused, milliseconds since the epoch; 0: it is not.
	Paused int64
}

// logRecord is what the savepoint files say of the log as a whole.
type logRecord struct {
	// Durable is the last commit of the log that was durable at that time. Without it, samples at the
	// log's end that become unreadable would not be missed.
	Durable Mark

	Lost lostTargets
}

// lostTargets are targets without a readable savepoint: each begins with the oldest data as soon as the
// log is asked for it.
type lostTargets struct {
	All    bool            // any target that has no savepoint may be one
	Owners map[uint64]bool // ownerOf its name
}

// maxLostOwners bounds the owners that are remembered one by one.
const maxLostOwners = 200

func (l *lostTargets) any() bool { return l.All || len(l.Owners) > 0 }

func (l *lostTargets) has(name string) bool { return l.All || l.Owners[ownerOf(name)] }

func (l *lostTargets) add(owner uint64) {
	if l.Owners == nil {
		l.Owners = map[uint64]bool{}
	}
	l.Owners[owner] = true
	l.All = l.All || len(l.Owners) > maxLostOwners
}

// CheckName tells why no target can have that name; nil if one can. Beside the log, a target has files of its own, in which
// all bytes of the name but small letters, digits, '-' and '_' may take three.
func CheckName(name string) error {
	if name == "" {
		return errors.New("target has no name")
	}
	n := len(name)
	for _, c := range []byte(name) {
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
			n += 2
		}
	}
	if n > maxNameBytes {
		return fmt.Errorf("target's name %q is too long for a file name: give it a shorter one", name)
	}
	return nil
}

// appendSavepoint appends the payload of a kindSavepoint. With maxRanges ranges that is less than maxCells cells.
func appendSavepoint(b []byte, st storedSavepoint) []byte {
	b = appendText(b, st.Name)
	b = binary.AppendVarint(b, st.LastOpen)
	b = appendMark(b, st.Start)
	b = appendMark(b, st.High)
	b = binary.AppendUvarint(b, uint64(st.Shards))
	b = binary.AppendUvarint(b, uint64(len(st.Done)))
	for _, r := range st.Done {
		b = appendMark(appendMark(b, r.From), r.To)
		b = binary.AppendUvarint(appendMark(b, r.High), uint64(r.Shards))
	}
	b = binary.AppendUvarint(b, st.Outcome.Delivered)
	b = binary.AppendUvarint(b, st.Outcome.Filtered)
	b = binary.AppendUvarint(b, uint64(len(st.Outcome.Dropped)))
	for _, n := range st.Outcome.Dropped {
		b = binary.AppendUvarint(b, n)
	}
	b = binary.AppendUvarint(b, uint64(st.Orphan))
	b = binary.AppendVarint(b, st.Paused)
	return appendText(b, string(st.Control))
}

func decodeSavepoint(b []byte) (storedSavepoint, error) {
	d := decoder{b: b}
	st := storedSavepoint{Name: d.text(), LastOpen: d.varint()}
	st.Start = d.mark()
	st.High = d.mark()
	st.Shards = d.shards()
	for n := d.uvarint(); n > 0 && d.err == nil; n-- {
		st.Done = append(st.Done, Range{From: d.mark(), To: d.mark(), High: d.mark(), Shards: d.shards()})
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
	st.Orphan = int64(min(d.uvarint(), maxOrphan))
	st.Paused = d.varint()
	st.Control = []byte(d.text())
	if len(st.Control) == 0 {
		st.Control = nil
	}
	if err := d.end(); err != nil {
		return storedSavepoint{}, err
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

// appendLog appends the payload of a kindLog.
func appendLog(b []byte, l logRecord) []byte {
	b = appendMark(b, l.Durable)
	if l.Lost.All {
		return append(b, 1, 0)
	}
	b = binary.AppendUvarint(append(b, 0), uint64(len(l.Lost.Owners)))
	for _, owner := range slices.Sorted(maps.Keys(l.Lost.Owners)) {
		b = binary.BigEndian.AppendUint64(b, owner)
	}
	return b
}

func decodeLog(b []byte) (l logRecord, err error) {
	d := decoder{b: b}
	l.Durable = d.mark()
	l.Lost.All = d.uvarint() != 0
	for n := d.uvarint(); n > 0 && d.err == nil; n-- {
		if owner := d.bytes(8); d.err == nil {
			l.Lost.add(binary.BigEndian.Uint64(owner))
		}
	}
	if err := d.end(); err != nil {
		return logRecord{}, err
	}
	return l, nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func (d *decoder) text() string { return string(d.bytes(d.uvarint())) }

func (d *decoder) shards() int { return int(min(d.uvarint(), 1<<16)) }

// end is the error of what was decoded, bytes that are left over included.
func (d *decoder) end() error {
	if d.err == nil && len(d.b) > 0 {
		return errors.New("bytes left over")
	}
	return d.err
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
