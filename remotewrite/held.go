package remotewrite

import "hwsagent/internal/refs"

// heldSamples are the newest samples of the series in a window, by the hash of their labels. Each sample that the window sends is looked
// up here. The series of a log come in much the same order each time, so the samples are in a list, which keeps its order when the
// window is empty: most samples are those after the one before, and only others are searched by their hash, at random in memory.
type heldSamples struct {
	byHash *refs.Positions // of all
	all    []heldSample
	next   int // the position after the one that find or add used last

	entry uint64 // the entry that is being admitted; entries are counted from 1
	since uint64 // samples of earlier entries are held no more
	held  int    // samples that were added since
}

// heldSample is the newest sample of a series in the window.
type heldSample struct {
	hash  uint64
	t     int64
	v     float64
	entry uint64 // that began the series; 0: none
}

func newHeldSamples() *heldSamples { return &heldSamples{byHash: refs.NewPositions(0), since: 1} }

// begin begins an entry.
func (h *heldSamples) begin() { h.entry++ }

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

// undo forgets the series that the entry began.
func (h *heldSamples) undo() {
	for i := range h.all {
		if h.all[i].entry == h.entry {
			h.all[i].entry = 0
			h.held--
		}
	}
}

// find returns the sample of a series, nil if there is none, and whether the present entry has brought it. It is valid until the next
// call of add.
func (h *heldSamples) find(hash uint64) (s *heldSample, present bool) {
	i := h.next
	if i >= len(h.all) || h.all[i].hash != hash {
		if i = h.byHash.Find(hash, func(i int) bool { return h.all[i].hash == hash }); i < 0 {
			return nil, false
		}
	}
	h.next = i + 1
	if s = &h.all[i]; s.entry < h.since {
		return nil, false
	}
	return s, s.entry == h.entry
}

// add adds the sample of a series that find has just not found.
func (h *heldSamples) add(hash uint64, t int64, v float64) {
	s := heldSample{hash, t, v, h.entry}
	h.held++
	if last := h.next - 1; last >= 0 && last < len(h.all) && h.all[last].hash == hash {
		h.all[last] = s // of an earlier time
		return
	}
	h.byHash.Add(hash)
	h.all = append(h.all, s)
	h.next = len(h.all)
}
