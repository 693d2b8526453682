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
		at := r.IntN(len(hashes))
		for range r.IntN(80) {
			if at = (at + 1) % len(hashes); r.IntN(8) == 0 { // most series come in one order
				at = r.IntN(len(hashes))
			}
			s := heldSample{hash: hashes[at], t: r.Int64(), v: r.Float64(), entry: h.entry}
			if held, _ := h.find(s.hash); held == nil {
				h.add(s.hash, s.t, s.v)
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
