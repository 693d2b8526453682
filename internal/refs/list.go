package refs

import (
	"iter"
	"reflect"
)

// pageBytes is the memory of a full page of a [List]: a size class of Go's allocator, less the header that an object
// with pointers has there.
const pageBytes = 3072 - 8

// List is a list of values without a spare capacity that grows with it: its memory is in pages, of which only the last
// one has free places. [NewList] makes one. Not safe for concurrent use.
type List[T any] struct {
	pages [][]T
	each  int // values of a full page
	n     int
}

// NewList returns an empty list.
func NewList[T any]() List[T] {
	return List[T]{each: max(1, pageBytes/int(reflect.TypeFor[T]().Size()))} // #nosec G115 -- the size of a type
}

// Len returns the number of values.
func (l *List[T]) Len() int { return l.n }

// At returns the place of a value. It is valid until the next call of Add, Pop or Keep.
func (l *List[T]) At(i int) *T { return &l.pages[i/l.each][i%l.each] }

// Add adds a value at the end and returns its place, which is valid as that of At.
func (l *List[T]) Add(value T) *T {
	last := len(l.pages) - 1
	switch {
	case l.n == len(l.pages)*l.each:
		l.pages = append(l.pages, make([]T, 0, min(l.each, l.n+4)))
		last++
	case len(l.pages[last]) == cap(l.pages[last]):
		l.pages[last] = append(make([]T, 0, min(l.each, 2*cap(l.pages[last]))), l.pages[last]...)
	}
	l.pages[last] = append(l.pages[last], value)
	l.n++
	return &l.pages[last][len(l.pages[last])-1]
}

// Pop removes the last value.
func (l *List[T]) Pop() {
	if l.n > 0 {
		l.truncate(l.n - 1)
	}
}

// Keep removes the values for which keep returns false. The others keep their order.
func (l *List[T]) Keep(keep func(*T) bool) {
	n := 0
	for i, value := range l.All() {
		if !keep(value) {
			continue
		}
		if n < i {
			*l.At(n) = *value
		}
		n++
	}
	l.truncate(n)
}

// truncate removes the values from the n-th on.
func (l *List[T]) truncate(n int) {
	pages := (n + l.each - 1) / l.each
	clear(l.pages[pages:])
	l.pages = l.pages[:pages]
	if pages > 0 {
		page := l.pages[pages-1]
		left := n - (pages-1)*l.each
		clear(page[left:])
		l.pages[pages-1] = page[:left]
	}
	l.n = n
}

// All returns the values and their places. The list must not change meanwhile, but for the values.
func (l *List[T]) All() iter.Seq2[int, *T] {
	return func(yield func(int, *T) bool) {
		i := 0
		for _, page := range l.pages {
			for k := range page {
				if !yield(i, &page[k]) {
					return
				}
				i++
			}
		}
	}
}
