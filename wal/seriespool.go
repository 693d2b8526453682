package wal

import (
	"bytes"
	"hash/maphash"
	"runtime"
	"sync"

	"hwsagent/internal/refs"
	"hwsagent/wal/internal/segment"
)

// seriesPool has one *Series for each combination of labels and metadata that the cursors of a log use, so a further cursor
// takes only a pointer per series. It is safe for concurrent use.
type seriesPool struct {
	symbols *symbols
	seed    maphash.Seed

	// live returns the appender's series with that reference, nil if there is none; the pool shares the memory of its
	// labels, and reads nothing else. live may be nil. It is called with mu held.
	live func(ref uint64) *memSeries

	mu     sync.Mutex
	byHash *refs.Chains[pooled] // by hash of the packed labels
	slots  int                  // number of slots created; series with the same labels share one
	free   []int                // unused slots
	abouts *abouts
	packed []byte // scratch of hold
}

// pooled is a series of the pool. The pool's mutex guards all fields except the series.
type pooled struct {
	series Series
	next   *pooled // in seriesPool.byHash
}

func newSeriesPool(y *symbols, live func(ref uint64) *memSeries) *seriesPool {
	p := &seriesPool{symbols: y, live: live, seed: maphash.MakeSeed(), abouts: newAbouts()}
	p.byHash = refs.NewChains(func(s *pooled) uint64 { return p.hash(s.series.labels) }, func(s *pooled) **pooled { return &s.next })
	return p
}

func (p *seriesPool) hash(ls packed) uint64 { return maphash.String(p.seed, string(ls)) }

// hold finds or creates the series with these encoded labels, which a segment announces as ref, and adds a holder to it. It
// returns nil if the labels are not well-formed. Of several series with the same labels it returns the newest; if the segment has
// other metadata for the series, they follow the announcement.
func (p *seriesPool) hold(ref uint64, encoded []byte) *pooled {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live != nil {
		live := p.live(ref)
		defer runtime.KeepAlive(live) // its labels are held as long as it can be reached
		if live != nil && p.symbols.is(live.labels, encoded) {
			s := p.byHash.Find(p.hash(live.labels), func(s *pooled) bool { return s.series.labels == live.labels })
			if s == nil {
				return p.make(p.symbols.keep(live.labels), nil, p.slot())
			}
			s.series.holders.Add(1)
			return s
		}
	}
	var known bool
	if p.packed, known = p.symbols.find(p.packed[:0], encoded); known {
		s := p.byHash.Find(maphash.Bytes(p.seed, p.packed), func(s *pooled) bool { return string(s.series.labels) == string(p.packed) })
		if s != nil {
			s.series.holders.Add(1)
			return s
		}
	}
	if !wellFormed(encoded) {
		return nil
	}
	return p.make(p.symbols.hold(encoded), nil, p.slot())
}

// instead finds or creates the series with the labels of s and that metadata, and adds a holder to it. The caller holds s,
// and releases it.
func (p *seriesPool) instead(s *pooled, about About) *pooled {
	p.mu.Lock()
	defer p.mu.Unlock()
	shared := p.abouts.share(about)
	other := p.byHash.Find(p.hash(s.series.labels), func(o *pooled) bool {
		return o.series.About == shared && o.series.labels == s.series.labels
	})
	if other != nil {
		other.series.holders.Add(1)
	} else {
		other = p.make(p.symbols.keep(s.series.labels), shared, s.series.Slot())
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

// make adds a series with one holder to the pool. ls are held for it. The caller holds p.mu.
func (p *seriesPool) make(ls packed, about *About, slot int) *pooled {
	s := &pooled{series: Series{slot: uint32(slot), labels: ls, symbols: p.symbols, About: about}} // #nosec G115 -- memory ends before 2^32 series
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
	leave(p.symbols, s, s.series.labels)
	if p.byHash.Find(p.hash(s.series.labels), func(o *pooled) bool { return o.series.slot == s.series.slot }) != nil {
		return
	}
	p.free = append(p.free, s.series.Slot())
}

// wellFormed reports whether names ascend and are not empty, as the writer writes them.
func wellFormed(encoded []byte) bool {
	d := segment.Decoder{B: encoded}
	var last []byte
	for n := d.Uvarint(); n > 0 && d.Err == nil; n-- {
		name := d.Bytes(d.Uvarint())
		if d.Bytes(d.Uvarint()); bytes.Compare(name, last) <= 0 {
			return false
		}
		last = name
	}
	return d.End() == nil
}
