package refs

import (
	"testing"
	"unsafe"
)

func TestTable(t *testing.T) {
	var table Table[uint64]
	first := uint64(perTablePage - 3) // not at the beginning of a page
	const n = 3 * perTablePage
	all := map[uint64]*uint64{}
	put := func(ref uint64) {
		all[ref] = &ref
		table.Put(ref, all[ref])
	}
	for ref := first; ref < first+n; ref++ {
		put(ref)
	}
	check := func() {
		t.Helper()
		for ref := range first + n + 2*perTablePage {
			if got := table.Get(ref); got != all[ref] {
				t.Fatalf("Get(%d) = %v, want %v", ref, got, all[ref])
			}
		}
		if table.Len() != len(all) {
			t.Errorf("Len = %d, want %d", table.Len(), len(all))
		}
	}
	check()
	put(first) // in place of another
	check()
	table.RemoveIf(func(ref *uint64) bool { return *ref%2 == 0 })
	for ref := range all {
		if ref%2 == 0 {
			delete(all, ref)
		}
	}
	check()
	for ref := first; ref < first+n/2; ref++ { // half of them are not there
		table.Remove(ref)
		delete(all, ref)
		check()
	}
	table.RemoveIf(func(*uint64) bool { return true })
	clear(all)
	check()
	if len(table.pages) != 0 {
		t.Errorf("%d pages are kept for nothing", len(table.pages))
	}
	put(first)
	check()
	table.Remove(first)
	clear(all)
	check()
	if len(table.pages) != 0 {
		t.Error("an empty page is kept")
	}
}

// TestPagesFitSizeClasses: a page takes no more of the allocator than its size class, with the header of an object that has pointers.
func TestPagesFitSizeClasses(t *testing.T) {
	const header = 8
	if n := unsafe.Sizeof(page[int]{}) + header; n > 2048 {
		t.Errorf("a page of pointers takes %d bytes, want at most 2048", n)
	}
	type value struct {
		_ *int
		_ uint64
	}
	if n := unsafe.Sizeof(valuePage[value]{}) + header; n > 4096 {
		t.Errorf("a page of values takes %d bytes, want at most 4096", n)
	}
	if n := unsafe.Sizeof(valuePage[uint64]{}); n > 2048 {
		t.Errorf("a page of values of 8 bytes takes %d bytes, want at most 2048", n)
	}
}
