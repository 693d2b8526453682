package refs

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"
)

// TestSlotsAreASlice: after any changes, slots have what a slice of pointers has.
func TestSlotsAreASlice(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	const most = 3*perTablePage + 5
	var s Slots[int]
	var want [most]*int
	for step := range 20_000 {
		slot := r.IntN(most)
		if step > 10_000 {
			slot %= 2 * perTablePage // the last pages empty
		}
		if r.IntN(3) == 0 {
			want[slot] = new(int)
		} else {
			want[slot] = nil
		}
		s.Put(slot, want[slot])
		if got, first := s.Vacant(0), slices.Index(append(want[:], nil), nil); got != first || got > 0 && s.Vacant(got-1) != got {
			t.Fatalf("step %d: slot %d is vacant, want %d", step, got, first)
		}
		if step%1000 != 0 {
			continue
		}
		n := 0
		for slot := range want {
			if s.Get(slot) != want[slot] {
				t.Fatalf("step %d: slot %d has another pointer", step, slot)
			}
			if want[slot] != nil {
				n++
			}
		}
		last := -1
		for slot, p := range s.All() {
			if slot <= last || p != want[slot] {
				t.Fatalf("step %d: slot %d comes after %d, with its pointer: %t", step, slot, last, p == want[slot])
			}
			last = slot
			n--
		}
		if n != 0 || s.Len() <= last || s.Len() > last+perTablePage || s.Get(most+perTablePage) != nil {
			t.Fatalf("step %d: %d pointers do not come; Len is %d, the last slot %d", step, n, s.Len(), last)
		}
	}
	for slot := range s.All() {
		s.Put(slot, nil)
	}
	if s.Len() != 0 || len(s.pages) != 0 {
		t.Errorf("%d pages are kept for no pointer, Len is %d", len(s.pages), s.Len())
	}
	if size := unsafe.Sizeof(page[int]{}); size > 2048-8 {
		t.Errorf("a page takes %d bytes", size)
	}
}
