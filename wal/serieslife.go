package wal

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"runtime"

	"hwsagent/wal/internal/segment"
)

// makeLocked adds a series with the labels of an announcement, which no other has and which must be well-formed.
func (m *seriesMap) makeLocked(announced []byte) *Series {
	slot := m.slots
	if n := len(m.free); n > 0 {
		slot, m.free = m.free[n-1], m.free[:n-1]
	} else {
		m.slots++
	}
	m.ref++
	s := &Series{labels: m.symbols.hold(announced), ref: m.ref, slot: slot}
	m.byHash.Add(s)
	return s
}

// againLocked adds another series with the labels of s, and that metadata.
func (m *seriesMap) againLocked(s *Series, about *About) *Series {
	other := &Series{labels: m.symbols.keep(s.labels), ref: s.ref, slot: s.slot, About: about}
	m.byHash.Add(other)
	return other
}

// findLocked returns a series with the labels of an announcement, that of the appender if it has one; nil if there is none.
func (m *seriesMap) findLocked(announced []byte) *Series {
	var ok bool
	if m.packed, ok = m.symbols.find(m.packed[:0], announced); !ok {
		return nil
	}
	s := m.byHash.Find(maphash.Bytes(m.seed, m.packed), func(s *Series) bool { return string(s.labels) == string(m.packed) })
	if s == nil {
		return nil
	}
	return m.nowLocked(s)
}

// nowLocked returns the series with the labels of s that the appender has, and s if it has none.
func (m *seriesMap) nowLocked(s *Series) *Series {
	if now := m.byRef.Get(s.ref); now != nil {
		return now
	}
	return s
}

// otherLocked returns a series besides s with its labels, nil if there is none.
func (m *seriesMap) otherLocked(s *Series) *Series {
	return m.byHash.Find(m.hash(s), func(o *Series) bool { return o != s && o.slot == s.slot })
}

// moveLocked gives another series with the same labels to the appender, which has s.
func (m *seriesMap) moveLocked(s, other *Series) *Series {
	other.appended, s.appended = s.appended, appended{}
	m.byRef.Put(other.ref, other)
	m.leaveLocked(s)
	return other
}

// leaveLocked removes a series that neither the appender nor a cursor has. Its slot becomes free when no series with the same
// labels is left. Its labels are released once nothing can reach it, because batches and targets use it longer.
func (m *seriesMap) leaveLocked(s *Series) {
	if s.live || s.holders.Load() > 0 {
		return
	}
	m.byHash.Remove(s)
	runtime.AddCleanup(s, m.symbols.release, s.labels)
	if m.otherLocked(s) == nil {
		m.free = append(m.free, s.slot)
	}
}

// hold finds or adds a series with these encoded labels, which a segment announces as ref, and adds a holder to it. It
// returns nil if the labels are not well-formed. If the segment has other metadata for the series, they follow the announcement.
func (m *seriesMap) hold(ref uint64, encoded []byte) *Series {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.byRef.Get(ref)
	if s == nil || !m.symbols.is(s.labels, encoded) {
		s = m.findLocked(encoded)
	}
	switch {
	case s != nil && s.Gone():
		s = m.moveLocked(s, m.againLocked(s, nil)) // targets have forgotten s for good
	case s == nil && !wellFormed(encoded):
		return nil
	case s == nil:
		s = m.makeLocked(encoded)
	}
	s.holders.Add(1)
	return s
}

// settle ends the announcements of series that hold returned. One that was not described has no metadata.
func (m *seriesMap) settle(held []*Series) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range held {
		if s.About == nil {
			s.About = m.unknown
		}
	}
}

// exchange moves a holder from s to the series with its labels and the changed metadata, which it returns.
func (m *seriesMap) exchange(s *Series, change func(*About)) *Series {
	m.mu.Lock()
	defer m.mu.Unlock()
	about := *cmp.Or(s.About, m.unknown)
	change(&about)
	if s.About != nil && about == *s.About {
		return s
	}
	shared := m.abouts.share(about)
	other := m.byHash.Find(m.hash(s), func(o *Series) bool { return o.slot == s.slot && o.About == shared })
	switch {
	case other == nil && s.About == nil:
		s.About = shared
		return s
	case other == nil:
		other = m.againLocked(s, shared)
	}
	other.holders.Add(1)
	m.releaseLocked(s)
	return other
}

// release removes a holder of s.
func (m *seriesMap) release(s *Series) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.releaseLocked(s)
}

// releaseLocked removes a holder of s. The appender does not keep a series for itself if cursors have another one.
func (m *seriesMap) releaseLocked(s *Series) {
	if s.holders.Add(-1) == 0 {
		s.holders.Store(isGone)
		if s.live {
			if other := m.otherLocked(s); other != nil {
				m.moveLocked(s, other)
				return
			}
		}
	}
	m.leaveLocked(s)
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
