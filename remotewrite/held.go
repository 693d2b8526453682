package remotewrite

import "hwsagent/internal/refs"

// heldSamples are the newest samples of the series in a window, by the hash of their labels. Each sample that the window sends is looked
// up here. The series of a log come in much the same order each time, so the samples are in a list, and what is searched in no order is
// small enough for the processor's caches, which a map of samples is not.
type heldSamples struct {
	byHash *refs.Positions // of all
	all    []heldSample
	entry  int // where the samples of the entry begin that is being admitted
}

// heldSample is the newest sample of a series in the window.
type heldSample struct {
	hash uint64
	t    int64
	v    float64
}

func newHeldSamples() *heldSamples { return &heldSamples{byHash: refs.NewPositions(0)} }

// begin begins an entry.
func (h *heldSamples) begin() { h.entry = len(h.all) }

// empty forgets all samples. The same entry begins again.
func (h *heldSamples) empty() {
	h.byHash.Clear()
	h.all, h.entry = h.all[:0], 0
}

// undo forgets the series that the entry began.
func (h *heldSamples) undo() {
	for range h.all[h.entry:] {
		h.byHash.Pop()
	}
	h.all = h.all[:h.entry]
}

// find returns the sample of a series, nil if there is none, and whether the present entry has brought it. It is valid until the next
// call of add.
func (h *heldSamples) find(hash uint64) (s *heldSample, present bool) {
	i := h.byHash.Find(hash, func(i int) bool { return h.all[i].hash == hash })
	if i < 0 {
		return nil, false
	}
	return &h.all[i], i >= h.entry
}

// add adds the sample of a series that has none.
func (h *heldSamples) add(s heldSample) {
	h.byHash.Add(s.hash)
	h.all = append(h.all, s)
}
