package wal

import "hwsagent/internal/refs"

// idleSegments is the number of whole segments without a series after which a cursor releases the series even without
// a record of its end: the record may be damaged, or the process may have ended before it wrote one. A segment
// announces each series that it uses, so a live series appears in every segment that spans one of its samples.
const idleSegments = 2

// seriesTable maps references to the series of one cursor. It is not safe for concurrent use;
// any goroutine may read the *Series that it returns.
type seriesTable struct {
	all *seriesMap

	// refs[0] has the references of the current segment, and each further table those last announced in one of the
	// idleSegments segments before, newest first. Each reference holds its series and is in one table only.
	refs [idleSegments + 1]refs.Table[Series]

	fresh []*Series // whose announcements go on; see settle
}

func newSeriesTable(all *seriesMap) *seriesTable { return &seriesTable{all: all} }

// turn begins another segment, which announces its references again, and releases series that
// were idle for too long.
func (t *seriesTable) turn() {
	t.releaseFrom(idleSegments)
	copy(t.refs[1:], t.refs[:])
	t.refs[0] = refs.Table[Series]{}
}

// release releases all series at once and empties the table.
func (t *seriesTable) release() { t.releaseFrom(0) }

// releaseFrom empties the table of the segment that is n before the current one, and those of earlier ones.
func (t *seriesTable) releaseFrom(n int) {
	for i := range t.refs[n:] {
		t.refs[n+i].RemoveIf(func(s *Series) bool {
			t.all.release(s)
			return true
		})
	}
}

// take removes a reference of this segment or an earlier one, and returns its series, whose holder the caller must
// release; nil if there is none.
func (t *seriesTable) take(ref uint64) *Series {
	for i := range t.refs {
		if s := t.refs[i].Get(ref); s != nil {
			t.refs[i].Remove(ref)
			return s
		}
	}
	return nil
}

// lookup returns the series of a ref in the current segment, nil if it was not announced.
func (t *seriesTable) lookup(ref uint64) *Series { return t.refs[0].Get(ref) }

// announce maps ref to the series with these encoded labels. ok is false if the labels are not
// well-formed. A ref that is known in this segment keeps its series: refs are never reused,
// so a second announcement is damage.
func (t *seriesTable) announce(ref uint64, encoded []byte) (ok bool) {
	if t.refs[0].Get(ref) != nil {
		return true
	}
	s := t.held(ref, encoded)
	if s == nil {
		if s = t.all.hold(ref, encoded); s == nil {
			return false
		}
		t.fresh = append(t.fresh, s)
	}
	t.refs[0].Put(ref, s)
	return true
}

// settle ends the announcements of a commit. Series are returned only after it.
func (t *seriesTable) settle() {
	if len(t.fresh) > 0 {
		t.all.settle(t.fresh)
		t.fresh = nil // there may have been very many
	}
}

// held returns the series that an earlier segment had under the same reference, nil if there is none, so that consumers
// keep the data derived from it. It removes the series, with its holder, from the table of that segment.
func (t *seriesTable) held(ref uint64, encoded []byte) *Series {
	for i := 1; i < len(t.refs); i++ {
		if s := t.refs[i].Get(ref); s != nil && t.all.symbols.is(s.labels, encoded) {
			t.refs[i].Remove(ref)
			return s
		}
	}
	return nil
}

// describe changes the metadata and family of a series.
func (t *seriesTable) describe(ref uint64, change func(*About)) {
	if s := t.refs[0].Get(ref); s != nil {
		t.refs[0].Put(ref, t.all.exchange(s, change))
	}
}
