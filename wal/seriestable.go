package wal

import (
	"github.com/prometheus/prometheus/model/metadata"

	"hwsagent/internal/refs"
)

// idleSegments is the number of whole segments without a series after which a cursor releases the series even without
// a record of its end: the record may be damaged, or the process may have ended before it wrote one. A segment
// announces each series that it uses, so a live series appears in every segment that spans one of its samples.
const idleSegments = 2

// seriesTable maps references to the series of one cursor. It is not safe for concurrent use;
// any goroutine may read the *Series that it returns.
type seriesTable struct {
	pool *seriesPool

	// refs[0] has the references of the current segment, and each further table those last announced in one of the
	// idleSegments segments before, newest first. Each reference holds its series and is in one table only.
	refs [idleSegments + 1]refs.Table[pooled]
}

func newSeriesTable(pool *seriesPool) *seriesTable { return &seriesTable{pool: pool} }

// turn begins another segment, which announces its references again, and releases series that
// were idle for too long.
func (t *seriesTable) turn() {
	t.pool.letGo(releases{tables: t.refs[idleSegments:]})
	copy(t.refs[1:], t.refs[:])
	t.refs[0] = refs.Table[pooled]{}
}

// release releases all series at once and empties the table.
func (t *seriesTable) release() { t.pool.letGo(releases{tables: t.refs[:]}) }

// take removes a reference of this segment or an earlier one, and returns its series, whose holder the caller must
// release; nil if there is none.
func (t *seriesTable) take(ref uint64) *pooled {
	for i := range t.refs {
		if s := t.refs[i].Get(ref); s != nil {
			t.refs[i].Remove(ref)
			return s
		}
	}
	return nil
}

// lookup returns the series of a ref in the current segment, nil if it was not announced.
func (t *seriesTable) lookup(ref uint64) *Series {
	if s := t.refs[0].Get(ref); s != nil {
		return &s.series
	}
	return nil
}

// announce maps ref to the series with these encoded labels. ok is false if the labels are not
// well-formed. A ref that is known in this segment keeps its series: refs are never reused,
// so a second announcement is damage.
func (t *seriesTable) announce(ref uint64, encoded []byte) (ok bool) {
	if t.refs[0].Get(ref) != nil {
		return true
	}
	s := t.held(ref, encoded)
	if s == nil {
		s = t.pool.hold(ref, encoded)
	}
	if s == nil {
		return false
	}
	t.refs[0].Put(ref, s)
	return true
}

// held returns the series that an earlier segment had under the same reference, nil if there is none, so that consumers
// keep the data derived from it. It removes the series, with its holder, from the table of that segment.
func (t *seriesTable) held(ref uint64, encoded []byte) *pooled {
	for i := 1; i < len(t.refs); i++ {
		if s := t.refs[i].Get(ref); s != nil && t.pool.symbols.is(s.series.labels, encoded) {
			t.refs[i].Remove(ref)
			return s
		}
	}
	return nil
}

// describe sets the metadata of a series.
func (t *seriesTable) describe(ref uint64, m metadata.Metadata) {
	if s := t.refs[0].Get(ref); s != nil && s.series.Meta() != m {
		t.put(ref, s, About{Meta: m, Family: s.series.Family()})
	}
}

// family sets the metric family of a series.
func (t *seriesTable) family(ref uint64, name string) {
	if s := t.refs[0].Get(ref); s != nil && s.series.Family() != name {
		t.put(ref, s, About{Meta: s.series.Meta(), Family: name})
	}
}

// put replaces s, which ref has, by the series with its labels and that metadata.
func (t *seriesTable) put(ref uint64, s *pooled, about About) {
	t.refs[0].Put(ref, t.pool.instead(s, about))
	t.pool.letGo(releases{series: []*pooled{s}})
}
