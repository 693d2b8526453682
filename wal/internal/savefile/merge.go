package savefile

import (
	"maps"
	"slices"

	"hwsagent/wal/internal/segment"
)

// record is one record of a savepoint file.
type record struct {
	identity
	file, at int // index of the file, and of the record's first cell in it
	payload  []byte
}

// contents is the result of reading the cells of one file.
type contents struct {
	present    bool
	index      int
	generation uint64 // 0: no records
	top        uint64 // greatest sequence number
	first      uint64 // least readable sequence number of the snapshot
	records    []record
	bad        int // cells that were written and are unreadable
	snapshot   int // number of cells of the snapshot; 0: unknown

	// complete means that the whole snapshot was once on the disk. Otherwise a power cut came during its writing, and the store
	// never relied on it.
	complete bool
}

// scanCells reads the cells of a file. It skips cells left over from an earlier generation.
//
// A power cut leaves each sector either old or new. So an invalid cell is damage. A missing cell, one that is blank
// or of an earlier generation, is damage if a later record says that it was durable; otherwise the store never relied on
// it.
func scanCells(index int, cells []cell) contents {
	f := contents{present: true, index: index}
	for i := range cells {
		f.generation = max(f.generation, cells[i].generation)
	}
	if f.generation == 0 {
		return f
	}
	end, durable := f.extent(cells)
	for i := 0; i < len(cells); {
		c := &cells[i]
		mine := c.known && c.generation == f.generation
		switch {
		case mine && c.whole && c.part == 0:
			i += f.record(cells, i, durable)
			continue
		case mine && !c.whole:
			f.bad++
		case !c.known && !c.blank && i <= end:
			f.bad++
			end = max(end, i+1) // include damaged cells after the last good one
		case i < durable:
			f.bad++
		}
		i++
	}
	return f
}

// extent determines the extent of the snapshot. It returns the number of cells that the file's generation spans, and how many
// of them were durable according to the cells.
func (f *contents) extent(cells []cell) (end, durable int) {
	for i := range cells {
		c := &cells[i]
		if c.generation != f.generation {
			continue
		}
		end, f.top = i+1, max(f.top, c.sequence)
		if c.snapshot && (f.first == 0 || c.sequence < f.first) {
			f.first = c.sequence
		}
		switch {
		case !c.whole:
		case c.snapshot:
			f.snapshot = c.count
		default:
			// Records are appended only after the snapshot is durable.
			durable, f.complete = max(durable, min(c.count, len(cells))), true
		}
	}
	f.complete = f.complete || f.snapshot > 0 && !slices.ContainsFunc(cells[:min(f.snapshot, len(cells))], func(c cell) bool {
		return c.blank || c.known && c.generation != f.generation
	})
	return end, durable
}

// record reads the record that begins at the i-th cell. It returns the number of cells of the record.
func (f *contents) record(cells []cell, i, durable int) int {
	first := &cells[i]
	r := record{identity: first.identity, file: f.index, at: i, payload: slices.Clip(first.payload)}
	damaged, missing := false, i+first.parts > len(cells)
	next := i + 1
	for ; next < min(i+first.parts, len(cells)); next++ {
		switch c := &cells[next]; {
		case c.whole && c.identity == first.identity && c.part == next-i:
			r.payload = append(r.payload, c.payload...)
		case c.identity == first.identity, !c.known && !c.blank:
			damaged = true
		default: // lost to a power cut, perhaps before it was durable
			missing = true
		}
	}
	switch {
	case damaged, missing && i < durable:
		f.bad++
	case !missing:
		f.records = append(f.records, r)
	}
	return next - i
}

// Kept is the newest record of one target.
type Kept[T any] struct {
	Value  T
	Doubt  bool // a newer record may have been lost
	record record
	ended  bool // the target no longer has a queue
}

// Saved is the merged content of both files.
type Saved[T any] struct {
	Targets    map[string]*Kept[T] // by name
	Log        LogRecord
	Generation uint64 // of the newest snapshot; 0: none
	Base       int    // index of the file that must be kept: the other one may be overwritten
	Damaged    int    // unreadable places that may have lost records

	logAt    uint64 // sequence number of the record of Log
	sequence uint64 // the greatest in use
	decode   Decode[T]
}

// Decode decodes the body of a target's record. Records with an error are skipped.
type Decode[T any] func(body []byte) (T, error)

// merge merges the records of the two files.
//
// The newest complete snapshot names all targets that existed. Later records count by their sequence numbers: those after the snapshot,
// and those appended to the other file while the snapshot was being written. Older records of the other file matter only after damage,
// because a target that the snapshot does not name has ended.
func merge[T any](files [2]contents, decode Decode[T]) Saved[T] {
	older, newer := &files[0], &files[1]
	if older.generation > newer.generation {
		older, newer = newer, older
	}
	base, spare := newer, older
	if !newer.complete && older.complete {
		base, spare = older, &contents{} // an error or a power cut ended the writing of the newer one
	}
	s := Saved[T]{Targets: map[string]*Kept[T]{}, Base: base.index, Generation: newer.generation, sequence: max(older.top, newer.top), decode: decode}
	stale := Saved[T]{Targets: map[string]*Kept[T]{}, decode: decode}
	for _, r := range spare.records {
		if base.complete && r.sequence < base.first {
			stale.take(r)
		} else {
			s.take(r)
		}
	}
	for _, r := range base.records {
		s.take(r)
	}
	for name, t := range stale.Targets {
		if s.Targets[name] == nil && base.bad > 0 {
			s.Targets[name] = t
		}
	}
	if stale.logAt > s.logAt {
		s.Log, s.logAt = stale.Log, stale.logAt
	}
	s.judge(base, older, newer)
	maps.DeleteFunc(s.Targets, func(_ string, t *Kept[T]) bool { return t.ended })
	return s
}

// take merges a record into s.
func (s *Saved[T]) take(r record) {
	set := func(name string, t *Kept[T]) {
		if was := s.Targets[name]; was == nil || was.record.sequence < r.sequence {
			t.record = r
			s.Targets[name] = t
		}
	}
	d := segment.Decoder{B: r.payload}
	switch r.kind {
	case kindLog:
		if l, err := decodeLog(r.payload); err == nil && r.sequence >= s.logAt {
			s.Log, s.logAt = l, r.sequence
		}
		return
	case kindTarget, kindDrop, kindRename:
	default:
		return // builds of this version write no records of other kinds
	}
	var ended string
	if r.kind != kindTarget {
		ended = d.Text()
	}
	if r.kind != kindDrop {
		name := d.Text()
		value, err := s.decode(d.B)
		if d.Err != nil || err != nil {
			return
		}
		set(name, &Kept[T]{Value: value})
	}
	if ended != "" {
		set(ended, &Kept[T]{ended: true})
	}
}

// judge determines the effect of damage: any target may have lost a newer savepoint, and a target without a record may have had one.
func (s *Saved[T]) judge(base, older, newer *contents) {
	s.Damaged = base.bad
	switch {
	case !older.present && !newer.present:
	case older.generation == 0, older.generation == newer.generation, !base.complete:
		s.Damaged++ // both files always have a snapshot, with different generations: the newest file may have been lost
	}
	if s.Damaged == 0 {
		return
	}
	s.Log.Lost = true
	for _, t := range s.Targets {
		t.Doubt = true
	}
}

// File sizes in bytes. Files are large enough for snapshots to be a small part of all writes.
const (
	minFile = 256 << 10
	maxFile = 64 << 20
)

// capacity is the size for a file that begins with a snapshot of n bytes.
func capacity(n int64) int64 {
	size := int64(minFile)
	for size < 8*n && size < maxFile {
		size *= 2
	}
	for compactionDue(n+n/8, size) { // otherwise the next snapshot would be due as soon as this one is written
		size *= 2
	}
	return size
}

// compactionDue reports whether the next round must write a snapshot to the other file. The snapshot's fsync replaces the
// one of the round, so a snapshot adds no fsync.
func compactionDue(used, size int64) bool { return used > size/8*3 }

// compactionUrgent reports whether that round must begin at once: more than an eighth of the file was written after compaction
// became due. The other half of the file is for records appended while the snapshot is written, or while an fsync hangs.
func compactionUrgent(used, size int64) bool { return used > size/2 }

// wholeLength reports whether the store creates files of that size. The size of a file is durable before its content, so a file of
// another size is truncated.
func wholeLength(size int64) bool { return size >= minFile && size&(size-1) == 0 }
