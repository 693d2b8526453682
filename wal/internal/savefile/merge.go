package savefile

import (
	"cmp"
	"slices"

	"hwsagent/wal/internal/segment"
)

// Saved is the merged content of both files.
type Saved struct {
	Targets map[string][]byte // the body of the newest record of each target, by name
	Log     LogRecord

	// Bad is the number of unreadable slots that may have held the newest record of any target, also of one that Targets has not.
	Bad int

	base     int    // index of the file with the newest whole state: the other one may be overwritten
	since    uint64 // of that state; 0: neither file has a whole state
	sequence uint64 // the greatest in use
}

// Fresh reports whether the files had no records.
func (s *Saved) Fresh() bool { return s.sequence == 0 }

// record is one record of a savepoint file.
type record struct {
	header
	file    int
	payload []byte
}

// merge merges the slots of the two files. Records count in the order of their sequence numbers, whatever file they are in. Those from
// before the newest whole state do not count, because it names all targets that existed; nor does a newer state that was not written to
// its end. After damage, all count.
func merge(files [2][]slot, sizes [2]int64) Saved {
	s := Saved{Targets: map[string][]byte{}}
	var records []record
	isGone := false
	var begun [2]uint64 // 0: the file has no whole state
	for i, slots := range files {
		found, since, bad := scan(slots)
		for j := range found {
			found[j].file = i
			s.sequence = max(s.sequence, found[j].sequence)
		}
		records = append(records, found...)
		if begun[i] = since; since > s.since {
			s.base, s.since = i, since
		}
		s.Bad += bad
		isGone = isGone || len(found) == 0 || sizes[i] < minFile
	}
	if sizes != [2]int64{} && (isGone || begun[0] == begun[1]) {
		s.Bad++ // the store begins both files, one after the other, so the newest records may have been in a file that is gone
	}
	slices.SortFunc(records, func(a, b record) int { return cmp.Compare(a.sequence, b.sequence) })
	for _, r := range records {
		if s.Bad > 0 || r.sequence >= s.since && (!r.state || r.file == s.base) {
			s.take(r)
		}
	}
	s.Log.Lost = s.Log.Lost || s.Bad > 0
	return s
}

// scan reads the slots of one file. since is that of its state; 0 if the state is not whole. A missing part of a state counts as bad if a
// later record says that the state was whole.
//
// Each sector is written whole or not at all, so a power cut leaves no bad slot, and a missing record was not durable. A write that failed
// in part may leave one directly behind the newest record, and an earlier use of the file may have left others further on.
func scan(slots []slot) (records []record, since uint64, bad int) {
	newest, torn, whole := -1, 0, true
	var state header
	for i, s := range slots {
		if s.good && (newest < 0 || s.sequence >= slots[newest].sequence) {
			newest = i
		}
		if s.good && s.since > state.since {
			state = s.header
		}
	}
	proven, missing := false, max(0, int(state.slots)-len(slots))
	for i, s := range slots {
		damaged := !s.good && !s.blank
		if damaged && i < newest {
			bad++
		}
		switch {
		case i >= int(state.slots):
			proven = proven || s.good && s.since == state.since
		case damaged:
			whole = false
		case !s.state || s.since != state.since:
			missing++
		}
		if s.good && s.part == 0 {
			if r, ok := recordAt(slots[i:]); ok {
				records = append(records, r)
			}
		}
	}
	for i := newest + 1; newest >= 0 && i < len(slots) && !slots[i].good && !slots[i].blank; i++ {
		torn++
	}
	if torn > 1 {
		bad += torn
	}
	if proven {
		return records, state.since, bad + missing
	}
	if whole && missing == 0 {
		return records, state.since, bad
	}
	return records, 0, bad
}

// recordAt joins the parts of the record that begins at the first of the slots.
func recordAt(slots []slot) (r record, ok bool) {
	first := slots[0]
	if first.parts > len(slots) {
		return r, false
	}
	r = record{header: first.header, payload: slices.Clip(first.payload)}
	for part := 1; part < first.parts; part++ {
		s := slots[part]
		if !s.good || s.header != first.header || s.part != part {
			return r, false
		}
		r.payload = append(r.payload, s.payload...)
	}
	return r, true
}

// take applies a record to s.
func (s *Saved) take(r record) {
	if r.kind == kindLog {
		if l, err := decodeLog(r.payload); err == nil {
			s.Log = l
		}
		return
	}
	d := segment.Decoder{B: r.payload}
	if r.kind == kindRename || r.kind == kindDrop {
		delete(s.Targets, d.Text())
	}
	if r.kind == kindRename || r.kind == kindTarget {
		if name := d.Text(); d.Err == nil {
			s.Targets[name] = d.B
		}
	}
}
