package remotewrite

import (
	"iter"
	"math"

	"hwsagent/internal/refs"
)

// heldSamples are the newest samples of the series in a window. For most targets a number in each series is enough: series.entry.
// Where two series of the log can have the same labels at the target, the samples are in a table by the hash of these labels. The series of
// a log come in much the same order each time, so the table is a list, which keeps its order when the window is empty: most samples are
// those after the one before, and only others are searched by their hash, at random in memory.
type heldSamples struct {
	entry uint32 // the entry that is being admitted; entries are counted from 1, over all windows
	since uint32 // samples of earlier entries are held no more

	byHash *refs.Positions // of all; nil as long as no two series can have the same labels
	all    []heldSample
	next   int // the position after the one that find or add used last
	held   int // samples of all that were added since
}

// heldSample is the newest sample of a series in the window.
type heldSample struct {
	hash  uint64
	t     int64
	v     float64
	entry uint32 // that began the series; one before since: none
}

// finding says which sample of a series the window holds when another one comes.
type finding uint8

const (
	notHeld     finding = iota // none; from now on it holds the new sample
	fromEntry                  // a sample of the same entry; from now on it holds both
	fromEarlier                // a sample of an earlier entry
	contradicts                // a sample of the same time with another value
)

// begin begins an entry.
func (h *heldSamples) begin() { h.entry++ }

// holds reports whether the window has the samples of an entry. The numbers may overflow: a series that was not seen for 2^32 entries
// may then seem to be held, which only ends a round early.
func (h *heldSamples) holds(entry uint32) bool { return h.entry-entry <= h.entry-h.since }

// empty forgets all samples. The same entry begins again.
func (h *heldSamples) empty() {
	few := h.held < len(h.all)/2 // most series are of other windows, for example of other scraped targets
	if few && cap(h.all) > 8*h.held {
		h.byHash, h.all = refs.NewPositions(h.held), make([]heldSample, 0, h.held) // releases the memory of many series
	} else if few {
		h.byHash.Clear()
		h.all = h.all[:0]
	}
	h.entry++
	h.since, h.held, h.next = h.entry, 0, 0
}

// undo forgets the series that the entry began, whose points are given.
func (h *heldSamples) undo(perShard [][]point) {
	for _, ps := range perShard {
		for i := range ps {
			if s := ps[i].series; s.entry == h.entry {
				s.entry = h.since - 1
			}
		}
	}
	for i := range h.all {
		if h.all[i].entry == h.entry {
			h.all[i].entry = h.since - 1
			h.held--
		}
	}
}

// hold records a sample, unless the window holds one of an earlier entry, or another value of the same time.
func (h *heldSamples) hold(p *point) finding {
	if h.byHash == nil {
		switch s := p.series; {
		case s.entry == h.entry:
			return fromEntry
		case h.holds(s.entry):
			return fromEarlier
		default:
			s.entry = h.entry
			return notHeld
		}
	}
	was := h.find(p.series.hash)
	switch {
	case was == nil:
		h.add(heldSample{p.series.hash, p.t, p.v, h.entry})
		return notHeld
	case was.t == p.t && p.kind == float && was.v != p.v && p.v == p.v:
		return contradicts
	case was.entry == h.entry:
		was.t, was.v = p.t, p.v
		return fromEntry
	}
	return fromEarlier
}

// compareLabels makes the table, for the samples of the series that a target has had so far.
func (h *heldSamples) compareLabels(all iter.Seq2[int, *series]) {
	h.byHash = refs.NewPositions(0)
	for _, s := range all {
		if h.holds(s.entry) {
			h.add(heldSample{s.hash, math.MinInt64, 0, s.entry}) // no sample has that time
		}
	}
}

// find returns the sample of a series, nil if there is none. It is valid until the next call of add.
func (h *heldSamples) find(hash uint64) *heldSample {
	i := h.next
	if i >= len(h.all) || h.all[i].hash != hash {
		if i = h.byHash.Find(hash, func(i int) bool { return h.all[i].hash == hash }); i < 0 {
			return nil
		}
	}
	h.next = i + 1
	if s := &h.all[i]; h.holds(s.entry) {
		return s
	}
	return nil
}

// add adds the sample of a series that find has just not found.
func (h *heldSamples) add(s heldSample) {
	h.held++
	if last := h.next - 1; last >= 0 && last < len(h.all) && h.all[last].hash == s.hash {
		h.all[last] = s // of an earlier time
		return
	}
	h.byHash.Add(s.hash)
	h.all = append(h.all, s)
	h.next = len(h.all)
}
