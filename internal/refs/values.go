package refs

import "iter"

// Values is a [Table] of small values, which it has in its pages: it takes no pointer and no object of
// its own for each. The zero value is empty. Not safe for concurrent use, nor for concurrent reading: Get
// remembers.
type Values[T any] struct {
	pages map[uint64]*valuePage[T]

	at     *valuePage[T] // as in Table
	atPage uint64
}

type valuePage[T any] struct {
	values [perValuePage]T
	there  [(perValuePage + 63) / 64]uint64 // a bit for each value that is there
	n      int                              // how many are
}

// Get is where the value of a reference is, nil if there is none. It is valid until that is removed.
func (t *Values[T]) Get(ref uint64) *T {
	p := t.page(ref / perValuePage)
	if i := ref % perValuePage; p != nil && p.there[i/64]&(1<<(i%64)) != 0 {
		return &p.values[i]
	}
	return nil
}

func (t *Values[T]) page(number uint64) *valuePage[T] {
	if t.at == nil || t.atPage != number {
		p := t.pages[number]
		if p == nil {
			return nil
		}
		t.at, t.atPage = p, number
	}
	return t.at
}

// Put sets the value of a reference.
func (t *Values[T]) Put(ref uint64, value T) {
	p := t.page(ref / perValuePage)
	if p == nil {
		if t.pages == nil {
			t.pages = make(map[uint64]*valuePage[T])
		}
		p = &valuePage[T]{}
		t.pages[ref/perValuePage] = p
	}
	i := ref % perValuePage
	if bit := uint64(1) << (i % 64); p.there[i/64]&bit == 0 {
		p.there[i/64] |= bit
		p.n++
	}
	p.values[i] = value
}

// Remove takes out the value of a reference, if there is one.
func (t *Values[T]) Remove(ref uint64) {
	p, i := t.page(ref/perValuePage), ref%perValuePage
	bit := uint64(1) << (i % 64)
	if p == nil || p.there[i/64]&bit == 0 {
		return
	}
	p.there[i/64] &^= bit
	clear(p.values[i : i+1])
	if p.n--; p.n == 0 {
		delete(t.pages, ref/perValuePage)
		t.at = nil
	}
}

// All are the references and where their values are, in no particular order. Meanwhile, values may be removed, and
// none be put.
func (t *Values[T]) All() iter.Seq2[uint64, *T] {
	return func(yield func(uint64, *T) bool) {
		for number, p := range t.pages {
			for i := range uint64(perValuePage) {
				if p.there[i/64]&(1<<(i%64)) != 0 && !yield(number*perValuePage+i, &p.values[i]) {
					return
				}
			}
		}
	}
}
