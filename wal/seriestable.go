package wal

import (
	"github.com/prometheus/prometheus/model/metadata"

	"hwsagent/refs"
)

// idleSegments is for how many whole segments a series may be absent before a cursor lets it
// go. A segment announces each series that it uses, so a series that is alive is seen in every
// segment long enough to hold one of its samples.
const idleSegments = 2

// seriesTable knows the series of one cursor by their references. It is not safe for concurrent
// use; the *Series that it hands out may be read anywhere.
type seriesTable struct {
	pool *seriesPool

	// refs are the references of the present segment, and those that were last in one of as many before as a series
	// may be idle, newest first. Each reference holds its series, and is in one of the tables.
	refs [idleSegments + 1]refs.Table[pooled]
}

func newSeriesTable(pool *seriesPool) *seriesTable { return &seriesTable{pool: pool} }

// turn begins another segment, which announces its references anew. Series that have been idle
// for long are let go.
func (t *seriesTable) turn() {
	t.pool.letGo(&t.refs[idleSegments])
	copy(t.refs[1:], t.refs[:])
	t.refs[0] = refs.Table[pooled]{}
}

// release lets go of all series. The table is empty then.
func (t *seriesTable) release() {
	for i := range t.refs {
		t.pool.letGo(&t.refs[i])
	}
}

// lookup is the series of a ref in the present segment, nil if it was not announced.
func (t *seriesTable) lookup(ref uint64) *Series {
	if s := t.refs[0].Get(ref); s != nil {
		return &s.series
	}
	return nil
}

// announce learns that ref stands for the series with these encoded labels. ok is false if the
// labels are not well-formed. A ref that is known in this segment keeps its meaning: refs are
// never reused, so a second one is damage.
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

// held is the series that an earlier segment had under the same reference, so that a consumer finds the data that it
// derived from it; nil if no segment had it. It leaves the table of that segment with its holder.
func (t *seriesTable) held(ref uint64, encoded []byte) *pooled {
	for i := 1; i < len(t.refs); i++ {
		if s := t.refs[i].Get(ref); s != nil && sameLabels(s.series.Labels, encoded) {
			t.refs[i].Remove(ref)
			return s
		}
	}
	return nil
}

// describe learns the metadata of a series.
func (t *seriesTable) describe(ref uint64, m metadata.Metadata) {
	if s := t.refs[0].Get(ref); s != nil && s.series.Meta() != m {
		t.refs[0].Put(ref, t.pool.instead(s, About{Meta: m, Family: s.series.Family()}))
	}
}

// family learns the metric family of a series.
func (t *seriesTable) family(ref uint64, name string) {
	if s := t.refs[0].Get(ref); s != nil && s.series.Family() != name {
		t.refs[0].Put(ref, t.pool.instead(s, About{Meta: s.series.Meta(), Family: name}))
	}
}
