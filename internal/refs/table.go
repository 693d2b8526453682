// Package refs has compact replacements for maps. They find values by the references that the log gives to series, or by
// hashes, and need less memory than a map.
package refs

// perTablePage and perValuePage are how many things or values a page has. A page of pointers, or of values of 8 or 16 bytes, fits with its
// other fields and the allocator's header into 2 or 4 KiB, which are size classes of Go's allocator; a few more would take the next class.
const (
	perTablePage = 254
	perValuePage = 250
)

// Table finds things by reference. References are given out one after the other, so pages of
// them are full, and smaller and quicker than a map of each would be. The zero value is
// empty. Not safe for concurrent use, nor for concurrent reading: Get remembers.
type Table[T any] struct {
	pages map[uint64]*page[T]
	n     int // things in all pages

	// at is the page looked up last, whose number is atPage: batches name series in much
	// the order in which they were made.
	at     *page[T]
	atPage uint64
}

type page[T any] struct {
	things [perTablePage]*T
	n      int // how many are not nil; a page without any is given back
}

// Len returns how many things there are.
func (t *Table[T]) Len() int { return t.n }

// Get returns the value of a reference, nil if it has none.
func (t *Table[T]) Get(ref uint64) *T {
	if p := t.page(ref / perTablePage); p != nil {
		return p.things[ref%perTablePage]
	}
	return nil
}

func (t *Table[T]) page(number uint64) *page[T] {
	if t.at == nil || t.atPage != number {
		p := t.pages[number]
		if p == nil {
			return nil
		}
		t.at, t.atPage = p, number
	}
	return t.at
}

// Put sets the value of a reference. The value must not be nil.
func (t *Table[T]) Put(ref uint64, thing *T) {
	number := ref / perTablePage
	p := t.page(number)
	if p == nil {
		if t.pages == nil {
			t.pages = make(map[uint64]*page[T])
		}
		p = &page[T]{}
		t.pages[number] = p
	}
	if p.things[ref%perTablePage] == nil {
		p.n++
		t.n++
	}
	p.things[ref%perTablePage] = thing
}

// Remove removes the value of a reference, if it has one.
func (t *Table[T]) Remove(ref uint64) {
	number := ref / perTablePage
	if p := t.page(number); p != nil && p.things[ref%perTablePage] != nil {
		t.take(number, p, ref%perTablePage)
	}
}

// RemoveIf removes each value for which gone is true.
func (t *Table[T]) RemoveIf(gone func(*T) bool) {
	for number, p := range t.pages {
		for i, thing := range p.things {
			if thing != nil && gone(thing) {
				t.take(number, p, uint64(i)) // #nosec G115 -- below perTablePage
			}
		}
	}
}

// take removes what is at a place of a page.
func (t *Table[T]) take(number uint64, p *page[T], at uint64) {
	p.things[at] = nil
	p.n--
	t.n--
	if p.n == 0 {
		delete(t.pages, number)
		t.at = nil
	}
}
