package remotewrite

import (
	"maps"
	"math/rand/v2"
	"testing"
)

// TestHeldSamplesAreAMap: after any entries, admitted or not, and whenever the window was empty, the table has what a map has.
func TestHeldSamplesAreAMap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	h := newHeldSamples()
	before, now := map[uint64]heldSample{}, map[uint64]heldSample{} // of earlier entries, and of the present one
	hashes := []uint64{0}
	for range 200 {
		hashes = append(hashes, r.Uint64(), r.Uint64()<<60)
	}
	for step := range 500 {
		h.begin()
		maps.Copy(before, now)
		clear(now)
		for range r.IntN(40) {
			s := heldSample{hashes[r.IntN(len(hashes))], r.Int64(), r.Float64()}
			if held, _ := h.find(s.hash); held == nil {
				h.add(s)
				now[s.hash] = s
			}
		}
		switch r.IntN(10) {
		case 0:
			h.empty()
			clear(before)
			clear(now)
		case 1:
			h.undo()
			clear(now)
		}
		for _, hash := range hashes {
			want, present := now[hash]
			if !present {
				want = before[hash]
			}
			held, brought := h.find(hash)
			if held == nil {
				held = &heldSample{}
			}
			if *held != want || brought != present {
				t.Fatalf("step %d: %+v (%t) instead of %+v (%t)", step, *held, brought, want, present)
			}
		}
	}
}
