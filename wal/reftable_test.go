package wal

import "testing"

func TestRefTable(t *testing.T) {
	var table refTable
	first := uint64(refsPerPage - 3) // not at the beginning of a page
	const n = 3 * refsPerPage
	all := map[uint64]*memSeries{}
	for ref := first; ref < first+n; ref++ {
		all[ref] = &memSeries{ref: ref}
		table.put(all[ref])
	}
	check := func() {
		t.Helper()
		for ref := range first + n + 2*refsPerPage {
			if got := table.get(ref); got != all[ref] {
				t.Fatalf("get(%d) = %v, want %v", ref, got, all[ref])
			}
		}
		if table.n != len(all) {
			t.Errorf("n = %d, want %d", table.n, len(all))
		}
	}
	check()
	table.removeIf(func(s *memSeries) bool { return s.ref%2 == 0 })
	for ref := range all {
		if ref%2 == 0 {
			delete(all, ref)
		}
	}
	check()
	table.removeIf(func(*memSeries) bool { return true })
	clear(all)
	check()
	if len(table.pages) != 0 {
		t.Errorf("%d pages are kept for nothing", len(table.pages))
	}
	s := &memSeries{ref: first}
	table.put(s)
	all[first] = s
	check()
}
