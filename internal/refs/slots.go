package refs

import (
	"iter"
	"slices"
)

// Slots has a pointer for each of many small numbers, which begin at 0 and are used again, as in a slice. It takes no spare
// capacity that grows with it, and releases pages that are empty. The zero value is empty. Not safe for concurrent use.
type Slots[T any] struct {
	pages []*page[T]
	n     int
}

// Len returns a number above all slots that have a pointer. It falls when the last page becomes empty.
func (s *Slots[T]) Len() int { return s.n }

// Get returns the pointer in a slot, nil if there is none.
func (s *Slots[T]) Get(slot int) *T {
	if i := uint(slot) / perTablePage; i < uint(len(s.pages)) && s.pages[i] != nil { // #nosec G115 -- a slot is not negative
		return s.pages[i].things[uint(slot)%perTablePage] // #nosec G115 -- likewise
	}
	return nil
}

// Put sets the pointer in a slot; nil empties the slot.
func (s *Slots[T]) Put(slot int, p *T) {
	at, i := slot/perTablePage, slot%perTablePage
	if p == nil {
		s.empty(at, i)
		return
	}
	for at >= len(s.pages) {
		s.pages = append(s.pages, nil)
	}
	if s.pages[at] == nil {
		s.pages[at] = &page[T]{}
	}
	if s.pages[at].things[i] == nil {
		s.pages[at].n++
	}
	s.pages[at].things[i] = p
	s.n = max(s.n, slot+1)
}

// Vacant returns the lowest slot without a pointer among those that are not below a number, below which all have one.
func (s *Slots[T]) Vacant(from int) int {
	for at := from / perTablePage; at < len(s.pages); at++ {
		switch p := s.pages[at]; {
		case p == nil:
			return at * perTablePage
		case p.n < perTablePage:
			return at*perTablePage + slices.Index(p.things[:], nil)
		}
	}
	return len(s.pages) * perTablePage
}

// empty removes the pointer at a place of a page.
func (s *Slots[T]) empty(at, i int) {
	if at >= len(s.pages) || s.pages[at] == nil || s.pages[at].things[i] == nil {
		return
	}
	s.pages[at].things[i] = nil
	if s.pages[at].n--; s.pages[at].n > 0 {
		return
	}
	s.pages[at] = nil
	for last := len(s.pages) - 1; last >= 0 && s.pages[last] == nil; last-- {
		s.pages = s.pages[:last]
	}
	s.n = min(s.n, len(s.pages)*perTablePage)
}

// All returns the slots that have a pointer, in ascending order, and the pointers. Meanwhile, slots may be emptied.
func (s *Slots[T]) All() iter.Seq2[int, *T] {
	return func(yield func(int, *T) bool) {
		for at, p := range s.pages {
			if p == nil {
				continue
			}
			for i, thing := range p.things {
				if thing != nil && !yield(at*perTablePage+i, thing) {
					return
				}
			}
		}
	}
}
