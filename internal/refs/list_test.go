package refs

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

type entry struct {
	id   int
	text string
	_    [3]uint64 // so that a page has few
}

// checkList compares a list with the values that it must have, and looks at its pages.
func checkList(t *testing.T, l *List[entry], want []int) {
	t.Helper()
	var got []int
	for i, e := range l.All() {
		if l.At(i) != e {
			t.Fatalf("value %d is in two places", i)
		}
		got = append(got, e.id)
	}
	if !slices.Equal(got, want) || l.Len() != len(want) {
		t.Fatalf("%d values %v, want %v", l.Len(), got, want)
	}
	room := 0
	for _, page := range l.pages {
		room += cap(page)
		for _, e := range page[len(page):cap(page)] {
			if e.text != "" {
				t.Fatal("a removed value is still in memory")
			}
		}
	}
	if room > max(2*l.Len(), l.Len()+l.each)+4 {
		t.Fatalf("%d values have room for %d", l.Len(), room)
	}
}

// TestListIsASlice: after any additions and removals, the list has what a slice has, and little memory beside it.
func TestListIsASlice(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	l, want, id := NewList[entry](), []int(nil), 0
	for step := range 300 {
		for range r.IntN(60) {
			if r.IntN(4) == 0 {
				l.Pop()
				want = want[:max(0, len(want)-1)]
				continue
			}
			if got := l.Add(entry{id: id, text: "text"}); got.id != id || l.At(l.Len()-1) != got {
				t.Fatalf("value %d is not at its place", id)
			}
			want = append(want, id)
			id++
		}
		if step%5 == 0 {
			mod := 1 + r.IntN(4) // 1: none is kept
			l.Keep(func(e *entry) bool { return e.id%mod != 0 })
			want = slices.DeleteFunc(want, func(id int) bool { return id%mod == 0 })
		}
		checkList(t, &l, want)
	}
}
