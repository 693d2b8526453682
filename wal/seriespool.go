package wal

import (
	"hash/maphash"
	"sync"

	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/internal/refs"
	"hwsagent/wal/internal/segment"
)

// seriesPool has one *Series for each combination of labels and metadata that the cursors of a log use, so a further cursor
// takes only a pointer per series. It is safe for concurrent use.
type seriesPool struct {
	// live returns the labels of the appender's series with that reference, empty if there is none; the pool shares their
	// memory. live may be nil. It is called with mu held.
	live func(ref uint64) labels.Labels
	seed maphash.Seed

	mu      sync.Mutex
	byHash  *refs.Chains[pooled] // by hash of the encoded labels
	slots   int                  // number of slots created; series with the same labels share one
	free    []int                // unused slots
	abouts  *abouts
	builder labels.ScratchBuilder
}

// pooled is a series of the pool. The pool's mutex guards all fields except the series.
type pooled struct {
	series Series
	next   *pooled // in seriesPool.byHash
}

func newSeriesPool(live func(ref uint64) labels.Labels) *seriesPool {
	return &seriesPool{
		live: live, seed: maphash.MakeSeed(),
		byHash: refs.NewChains(func(s *pooled) uint64 { return uint64(s.series.hash) }, func(s *pooled) **pooled { return &s.next }),
		abouts: newAbouts(), builder: labels.NewScratchBuilder(16),
	}
}

// hold finds or creates the series with these encoded labels, which a segment announces as ref, and adds a holder to it. It
// returns nil if the labels are not well-formed. Of several series with the same labels it returns the newest; if the segment has
// other metadata for the series, they follow the announcement.
func (p *seriesPool) hold(ref uint64, encoded []byte) *pooled {
	hash := uint32(maphash.Bytes(p.seed, encoded)) // #nosec G115 -- half of it
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.byHash.Find(uint64(hash), func(s *pooled) bool { return s.series.hash == hash && sameLabels(s.series.Labels, encoded) }); s != nil {
		s.series.holders.Add(1)
		return s
	}
	ls, ok := p.labels(ref, encoded)
	if !ok {
		return nil
	}
	return p.make(ls, nil, hash, p.slot())
}

// instead finds or creates the series with the labels of s and that metadata, and adds a holder to it. The caller holds s,
// and releases it.
func (p *seriesPool) instead(s *pooled, about About) *pooled {
	p.mu.Lock()
	defer p.mu.Unlock()
	shared := p.abouts.share(about)
	other := p.byHash.Find(uint64(s.series.hash), func(o *pooled) bool {
		return o.series.About == shared && labels.Equal(o.series.Labels, s.series.Labels)
	})
	if other != nil {
		other.series.holders.Add(1)
	} else {
		other = p.make(s.series.Labels, shared, s.series.hash, s.series.Slot)
	}
	return other
}

// releases are series of a cursor that lose one holder each: single ones, and all in some tables.
type releases struct {
	series []*pooled
	tables []refs.Table[pooled]
}

// letGo removes the holders, and empties the tables.
func (p *seriesPool) letGo(r releases) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range r.series {
		p.drop(s)
	}
	for i := range r.tables {
		r.tables[i].RemoveIf(func(s *pooled) bool {
			p.drop(s)
			return true
		})
	}
}

// slot returns an unused slot. The caller holds p.mu.
func (p *seriesPool) slot() int {
	if n := len(p.free); n > 0 {
		slot := p.free[n-1]
		p.free = p.free[:n-1]
		return slot
	}
	p.slots++
	return p.slots - 1
}

// make adds a series with one holder to the pool. The caller holds p.mu.
func (p *seriesPool) make(ls labels.Labels, about *About, hash uint32, slot int) *pooled {
	s := &pooled{series: Series{Slot: slot, Labels: ls, About: about, hash: hash}}
	s.series.holders.Store(1)
	p.byHash.Add(s)
	return s
}

// drop removes a holder of a series. Without holders the series leaves the pool; its slot becomes free when no series
// with the same labels is left. The caller holds p.mu.
func (p *seriesPool) drop(s *pooled) {
	if s.series.holders.Add(-1) > 0 {
		return
	}
	s.series.holders.Store(isGone)
	p.byHash.Remove(s)
	if p.byHash.Find(uint64(s.series.hash), func(o *pooled) bool { return o.series.Slot == s.series.Slot }) != nil {
		return
	}
	p.free = append(p.free, s.series.Slot)
}

// labels builds labels from their encoding; names must ascend and not be empty, as the
// writer writes them. It shares the labels of the appender if they are equal. The caller holds p.mu.
func (p *seriesPool) labels(ref uint64, encoded []byte) (labels.Labels, bool) {
	if p.live != nil {
		if ls := p.live(ref); !ls.IsEmpty() && sameLabels(ls, encoded) {
			return ls, true
		}
	}
	d := segment.Decoder{B: encoded}
	p.builder.Reset()
	last := ""
	for n := d.Uvarint(); n > 0 && d.Err == nil; n-- {
		name, value := string(d.Bytes(d.Uvarint())), string(d.Bytes(d.Uvarint()))
		if name <= last {
			return labels.EmptyLabels(), false
		}
		last = name
		p.builder.Add(name, value)
	}
	if d.Err != nil || len(d.B) > 0 {
		return labels.EmptyLabels(), false
	}
	return p.builder.Labels(), true
}

// sameLabels reports whether encoded is the encoding of ls.
func sameLabels(ls labels.Labels, encoded []byte) bool {
	d := segment.Decoder{B: encoded}
	if d.Uvarint() != uint64(ls.Len()) {
		return false
	}
	same := true
	ls.Range(func(l labels.Label) {
		same = same && string(d.Bytes(d.Uvarint())) == l.Name && string(d.Bytes(d.Uvarint())) == l.Value
	})
	return same && d.Err == nil && len(d.B) == 0
}
