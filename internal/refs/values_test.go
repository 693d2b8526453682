package refs

import (
	"maps"
	"math/rand/v2"
	"testing"
	"time"
)

// TestValuesAreAMap: after any puts and removals the table has what a map has, and no page without a value.
func TestValuesAreAMap(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var table Values[int]
	want := map[uint64]int{}
	for step := range 200 {
		grow := 3 + 2*(step/50%2) // of 8: more come, then more go
		for range r.IntN(200) {
			ref := 1<<40 + r.Uint64N(4*perValuePage)
			if r.IntN(8) < grow {
				want[ref] = r.IntN(3) // also 0
				table.Put(ref, want[ref])
				continue
			}
			delete(want, ref)
			table.Remove(ref)
		}
		got := map[uint64]int{}
		for ref, v := range table.All() {
			got[ref] = *v
		}
		if !maps.Equal(got, want) {
			t.Fatalf("step %d: %d values, want %d others", step, len(got), len(want))
		}
		for ref := uint64(1<<40 - 1); ref <= 1<<40+4*perValuePage; ref++ {
			v, there := want[ref]
			if got := table.Get(ref); (got != nil) != there || there && *got != v {
				t.Fatalf("step %d: Get(%d) = %v, want %d, %v", step, ref, got, v, there)
			}
		}
	}
	for ref := range table.All() {
		table.Remove(ref)
	}
	if len(table.pages) != 0 || table.Get(1<<40) != nil {
		t.Errorf("%d pages are kept for nothing", len(table.pages))
	}
}
