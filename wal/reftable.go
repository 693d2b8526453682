package wal

// refTable finds series by reference. References are given out one after the other, so
// pages of them are full, and smaller and quicker than a map of each would be. The zero
// value is empty.
type refTable struct {
	pages map[uint64]*refPage
	n     int // series in all pages

	// at is the page looked up last, whose number is atPage: batches name series in much
	// the order in which they were made.
	at     *refPage
	atPage uint64
}

const refsPerPage = 256

type refPage struct {
	series [refsPerPage]*memSeries
	n      int // how many are not nil; a page without any is given back
}

// get is the series of a reference, nil if there is none.
func (t *refTable) get(ref uint64) *memSeries {
	if p := t.page(ref / refsPerPage); p != nil {
		return p.series[ref%refsPerPage]
	}
	return nil
}

func (t *refTable) page(number uint64) *refPage {
	if t.at == nil || t.atPage != number {
		p := t.pages[number]
		if p == nil {
			return nil
		}
		t.at, t.atPage = p, number
	}
	return t.at
}

// put adds a series, whose reference is new.
func (t *refTable) put(s *memSeries) {
	number := s.ref / refsPerPage
	p := t.page(number)
	if p == nil {
		if t.pages == nil {
			t.pages = make(map[uint64]*refPage)
		}
		p = &refPage{}
		t.pages[number] = p
	}
	p.series[s.ref%refsPerPage] = s
	p.n++
	t.n++
}

// removeIf removes every series for which gone is true.
func (t *refTable) removeIf(gone func(*memSeries) bool) {
	for number, p := range t.pages {
		for i, s := range p.series {
			if s != nil && gone(s) {
				p.series[i] = nil
				p.n--
				t.n--
			}
		}
		if p.n == 0 {
			delete(t.pages, number)
		}
	}
	t.at = nil
}
