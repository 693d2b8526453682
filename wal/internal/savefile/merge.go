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

// badCell is damage in a savepoint file: something was written there and cannot be read.
type badCell struct {
	identity
	known bool // the identity is
	at    int  // index of the cell
}

// contents is what the cells of one file say.
type contents struct {
	present    bool
	index      int
	generation uint64 // 0: it has no record
	top        uint64 // greatest sequence number
	first      uint64 // least sequence number of the snapshot, as far as that can be read
	records    []record
	bad        []badCell
	snapshot   int // cells that its snapshot has; 0: not known

	// complete says that the whole snapshot was on the disk once. Otherwise a power cut came while it was being written, so nothing
	// rests on it.
	complete bool
}

// scanCells reads the cells of a file. What is left of an earlier generation is passed over.
//
// A power cut leaves each sector as it was or as it was to be. So a cell that makes no sense is damage. A cell that
// is missing, since it is blank or of an earlier generation, is damage if a later record says that it was durable; otherwise
// nothing rested on it.
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
			f.bad = append(f.bad, badCell{c.identity, true, i})
		case !c.known && !c.blank && i <= end:
			f.bad = append(f.bad, badCell{at: i})
			end = max(end, i+1) // damage of the last cells lies behind the last good one
		case i < durable:
			f.bad = append(f.bad, badCell{at: i})
		}
		i++
	}
	return f
}

// extent finds out what the snapshot is. It returns how many cells the file's generation spans, and how many of them were
// durable as far as they tell.
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
			// Nothing is appended before the snapshot is durable.
			durable, f.complete = max(durable, min(c.count, len(cells))), true
		}
	}
	f.complete = f.complete || f.snapshot > 0 && !slices.ContainsFunc(cells[:min(f.snapshot, len(cells))], func(c cell) bool {
		return c.blank || c.known && c.generation != f.generation
	})
	return end, durable
}

// record reads the record that begins at the i-th cell. It returns how many cells that takes.
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
		default: // a power cut took it, before it was durable or not
			missing = true
		}
	}
	switch {
	case damaged, missing && i < durable:
		f.bad = append(f.bad, badCell{first.identity, true, i})
	case !missing:
		f.records = append(f.records, r)
	}
	return next - i
}

// Kept is the newest that the files say of one target.
type Kept[T any] struct {
	Value  T
	Doubt  bool // a newer record may have been lost
	record record
	ended  bool // it has no queue any more
}

// Saved is what both files say together.
type Saved[T any] struct {
	Targets    map[string]*Kept[T] // by name
	Log        LogRecord
	Generation uint64 // of the newest snapshot; 0: there is none
	Base       int    // index of the file that everything rests on: the other one may be overwritten
	Damaged    int    // places that could not be read and may have cost something

	logAt    uint64 // sequence number of the record that Log is from
	sequence uint64 // the greatest in use
	decode   Decode[T]
}

// Decode decodes the body of a target's record. A record with an error is passed over.
type Decode[T any] func(body []byte) (T, error)

// merge puts together what the two files say.
//
// The newest complete snapshot names all targets that there were. Later records count by their sequence numbers: those behind it, and
// those that went to the other file while it was being written. What the other file says otherwise is of use only where damage has
// cost something: a target that the snapshot does not name has ended.
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
		if s.Targets[name] == nil && base.mayHide(name) {
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

// mayHide reports whether a target may have a record in the snapshot that cannot be read.
func (f *contents) mayHide(name string) bool {
	return slices.ContainsFunc(f.bad, func(b badCell) bool {
		if b.known {
			return b.snapshot && b.owner == ownerOf(name)
		}
		return b.at < f.snapshot || f.snapshot == 0
	})
}

// take takes a record in.
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
		return // no build of this version writes such a record, nor one that cannot be decoded
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

// judge finds out what damage has cost: targets of which a newer savepoint may have been lost are
// doubted, and those of which nothing is left are remembered as lost.
func (s *Saved[T]) judge(base, older, newer *contents) {
	owners := make(map[uint64]*Kept[T], len(s.Targets))
	for name, t := range s.Targets {
		owners[ownerOf(name)] = t
	}
	s.Damaged = len(base.bad)
	for _, b := range base.bad {
		switch t := owners[b.owner]; {
		case !b.known:
			s.suspect(func(r *record) bool {
				// A record behind it makes up for it. So does one in a snapshot that has one of each target.
				return r.file == base.index && (r.at > b.at || b.at < base.snapshot)
			})
		case b.owner == 0 || t != nil && t.record.sequence > b.sequence:
		case t != nil && !t.ended:
			t.Doubt = true
		default:
			s.Log.Lost.add(b.owner)
		}
	}
	switch {
	case !older.present && !newer.present:
	case older.generation == 0, older.generation == newer.generation, !base.complete:
		// Both files have a snapshot from the beginning on, and never the same. So the newest file may be gone.
		s.Damaged++
		s.suspect(func(*record) bool { return false })
	}
}

// suspect notes what the loss of a record of an unknown owner may cost. unharmed says of which targets the
// newest record is there for certain.
func (s *Saved[T]) suspect(unharmed func(newest *record) bool) {
	for _, t := range s.Targets {
		t.Doubt = t.Doubt || !unharmed(&t.record)
	}
	s.Log.Lost.All = true
}

// What a snapshot needs, and how long a file is made for it, in bytes: long enough that writing snapshots is a small
// part of all that is written.
const (
	minFile = 256 << 10
	maxFile = 64 << 20
)

// capacity is how long a file is to be that begins with a snapshot of n bytes.
func capacity(n int64) int64 {
	size := int64(minFile)
	for size < 8*n && size < maxFile {
		size *= 2
	}
	for compactionDue(n+n/8, size) { // else the next snapshot would be due as soon as this one is written
		size *= 2
	}
	return size
}

// compactionDue reports whether the next round is to leave a file of that size for a new snapshot in the other one. That
// takes the place of the round's fsync, so a snapshot costs no fsync of its own.
func compactionDue(used, size int64) bool { return used > size/8*3 }

// compactionUrgent reports whether such a round is to begin at once: more than an eighth of the file was written since the one
// before. The other half is for what is appended while the snapshot is being written, or an fsync hangs.
func compactionUrgent(used, size int64) bool { return used > size/2 }

// wholeLength reports whether files are ever made that long. Their length is durable before anything else in them is, so one of
// another length is cut off.
func wholeLength(size int64) bool { return size >= minFile && size&(size-1) == 0 }
