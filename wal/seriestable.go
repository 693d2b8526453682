package wal

import (
	"hash/maphash"
	"unique"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"

	"hwsagent/refs"
)

// idleSegments is for how many whole segments a series may be absent before it is
// forgotten. A segment announces each series that it uses, so a series that is alive
// is seen in every segment long enough to hold one of its samples.
const idleSegments = 2

// seriesTable knows the series of one cursor: by their ref in the present segment,
// and by their labels across segments. It is not safe for concurrent use; the *Series
// that it hands out never change and may be read anywhere.
type seriesTable struct {
	seed     maphash.Seed
	byLabels map[uint64]*known // by hash of the encoded labels
	slots    int               // slots ever used
	free     []int             // slots of forgotten series
	segment  int               // counts segments, for eviction
	entries  uint64            // counts the entries handed out

	refs   refs.Table[known] // of the present segment
	abouts *abouts

	builder labels.ScratchBuilder
	live    func(ref uint64) labels.Labels // see tail.labelsOf; may be nil
}

// longLabels is from how many bytes on the cursors of this process share the labels of a series: sharing
// takes about 100 bytes, and a label may have a megabyte.
const longLabels = 512

// known is one series across segments.
type known struct {
	series *Series
	shared unique.Handle[labels.Labels] // keeps labels of longLabels and more shared; else zero
	made   uint64                       // the entry in which series was made: until that is handed out it may change
	seen   int                          // the segment that announced it last
	next   *known                       // with the same hash
}

func newSeriesTable(live func(ref uint64) labels.Labels) *seriesTable {
	return &seriesTable{
		live:     live,
		seed:     maphash.MakeSeed(),
		byLabels: map[uint64]*known{},
		abouts:   newAbouts(),
		builder:  labels.NewScratchBuilder(16),
	}
}

// turn begins another segment: refs mean nothing any more, and series that have been
// idle for long are forgotten.
func (t *seriesTable) turn() {
	t.refs = refs.Table[known]{}
	t.segment++
	for hash, k := range t.byLabels {
		if first := t.evict(k); first == nil {
			delete(t.byLabels, hash)
		} else if first != k {
			t.byLabels[hash] = first
		}
	}
}

// evict removes the idle series from a chain.
func (t *seriesTable) evict(k *known) *known {
	if k == nil {
		return nil
	}
	k.next = t.evict(k.next)
	if t.segment-k.seen > idleSegments {
		t.free = append(t.free, k.series.Slot)
		return k.next
	}
	return k
}

// lookup is the series of a ref in the present segment, nil if it was not announced.
func (t *seriesTable) lookup(ref uint64) *Series {
	if k := t.refs.Get(ref); k != nil {
		return k.series
	}
	return nil
}

// announce learns that ref stands for the series with these encoded labels. It
// returns the series, nil if the labels are not well-formed. A ref that is known
// keeps its meaning: refs are never reused, so a second one is damage.
func (t *seriesTable) announce(ref uint64, encoded []byte) *known {
	if k := t.refs.Get(ref); k != nil {
		return k
	}
	k := t.intern(ref, encoded)
	if k == nil {
		return nil
	}
	k.seen = t.segment
	t.refs.Put(ref, k)
	return k
}

// intern finds the series with these encoded labels, which is announced as ref, or makes
// it.
func (t *seriesTable) intern(ref uint64, encoded []byte) *known {
	hash := maphash.Bytes(t.seed, encoded)
	first := t.byLabels[hash]
	for k := first; k != nil; k = k.next {
		if sameLabels(k.series.Labels, encoded) {
			return k
		}
	}
	ls, ok := t.labels(ref, encoded)
	if !ok {
		return nil
	}
	slot := t.slots
	if n := len(t.free); n > 0 {
		slot, t.free = t.free[n-1], t.free[:n-1]
	} else {
		t.slots++
	}
	k := &known{series: &Series{Slot: slot, Labels: ls}, made: t.entries, next: first}
	if len(encoded) >= longLabels {
		k.shared = unique.Make(ls)
		k.series.Labels = k.shared.Value()
	}
	t.byLabels[hash] = k
	return k
}

// labels builds labels from their encoding: names ascending and not empty, as the
// writer writes them. Where the appender has the same ones, it shares them.
func (t *seriesTable) labels(ref uint64, encoded []byte) (labels.Labels, bool) {
	if t.live != nil {
		if ls := t.live(ref); !ls.IsEmpty() && sameLabels(ls, encoded) {
			return ls, true
		}
	}
	d := decoder{b: encoded}
	t.builder.Reset()
	last := ""
	for n := d.uvarint(); n > 0 && d.err == nil; n-- {
		name, value := string(d.bytes(d.uvarint())), string(d.bytes(d.uvarint()))
		if name <= last {
			return labels.EmptyLabels(), false
		}
		last = name
		t.builder.Add(name, value)
	}
	if d.err != nil || len(d.b) > 0 {
		return labels.EmptyLabels(), false
	}
	return t.builder.Labels(), true
}

// sameLabels reports whether encoded is the encoding of ls.
func sameLabels(ls labels.Labels, encoded []byte) bool {
	d := decoder{b: encoded}
	if d.uvarint() != uint64(ls.Len()) {
		return false
	}
	same := true
	ls.Range(func(l labels.Label) {
		same = same && string(d.bytes(d.uvarint())) == l.Name && string(d.bytes(d.uvarint())) == l.Value
	})
	return same && d.err == nil && len(d.b) == 0
}

// describe learns the metadata of a series.
func (t *seriesTable) describe(ref uint64, m metadata.Metadata) {
	if k := t.refs.Get(ref); k != nil && k.series.Meta() != m {
		t.own(k).About = t.abouts.share(About{Meta: m, Family: k.series.Family()})
	}
}

// family learns the metric family of a series.
func (t *seriesTable) family(ref uint64, name string) {
	if k := t.refs.Get(ref); k != nil && k.series.Family() != name {
		t.own(k).About = t.abouts.share(About{Meta: k.series.Meta(), Family: name})
	}
}

// own is the series if nobody outside has seen it yet. Others may be reading one that
// was handed out, so that one is replaced by a copy in the same slot.
func (t *seriesTable) own(k *known) *Series {
	if k.made != t.entries {
		copied := *k.series
		k.series, k.made = &copied, t.entries
	}
	return k.series
}
