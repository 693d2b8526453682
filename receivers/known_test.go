package receivers

import (
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// bytesTable is a table of values that take as many bytes as they say.
func bytesTable(most int) *Table[int] { return NewTable(most, func(v *int) int { return *v }) }

// TestTableIsBounded: memory is bounded, what is sent stays, and what is not sent is forgotten.
func TestTableIsBounded(t *testing.T) {
	const most, each = 1 << 20, 1 << 20 / 20
	k, now := bytesTable(most), time.Now()
	k.Find(nil, now) // begins the first generation
	k.Put([]byte("first"), 5)
	for i := range 100 {
		k.Put([]byte(strconv.Itoa(i)), each)
		k.Put([]byte("0"), each) // a second time counts once
	}
	if n := k.entries.Len(); k.bytes > most || n < 19 || n > 21 {
		t.Errorf("%d entries of %d bytes", n, k.bytes)
	}
	for range 3 {
		now = now.Add(knownFor)
		if v := k.Find([]byte("first"), now); v == nil || *v != 5 {
			t.Fatal("what is sent is forgotten")
		}
	}
	if n := k.entries.Len(); n != 1 || k.bytes != knownOverhead+5 {
		t.Errorf("%d are known, of %d bytes", n, k.bytes)
	}
	if k.Find([]byte("0"), now) != nil {
		t.Error("what is not sent stays")
	}
}

// TestTableTellsKeysApart: only equal bytes are equal.
func TestTableTellsKeysApart(t *testing.T) {
	k, now := NewTable(1<<20, textSize), time.Now()
	k.Find(nil, now)
	for _, key := range []string{"", "a", "b", "a\x00", strings.Repeat("a", 1000)} {
		if v := k.Find([]byte(key), now); v != nil {
			t.Errorf("%.20q is found as %.20q", key, *v)
		}
		k.Put([]byte(key), key)
		if v := k.Find([]byte(key), now); v == nil || *v != key {
			t.Errorf("%.20q is not found", key)
		}
	}
}

// TestTableFollowsSenders: an entry is found wherever the sender has it in the order, and not by the order once it is forgotten.
func TestTableFollowsSenders(t *testing.T) {
	k, now := bytesTable(1<<20), time.Now()
	k.Find(nil, now)
	const n = 5
	for i := range n {
		k.Put([]byte(strconv.Itoa(i)), i)
	}
	var at *entry[int]
	for _, order := range []string{"01234", "01234", "43210", "00112", "42424"} {
		for _, key := range order {
			if at = k.find(at, []byte(string(key)), now); at == nil || at.value != int(key-'0') {
				t.Fatalf("%s: %c is not found", order, key)
			}
		}
	}
	for range 2 {
		now = now.Add(knownFor)
		at = k.find(nil, []byte("4"), now)
	}
	if k.entries.Len() != 1 || at == nil {
		t.Fatalf("%d are known", k.entries.Len())
	}
	if k.find(at, []byte("2"), now) != nil {
		t.Error("what is forgotten is found behind an entry that it followed")
	}
}

// TestKnownIsSmall: an entry for a series fills a size class of Go's allocator.
func TestKnownIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(entry[Known]{}); n > 48 {
		t.Errorf("an entry takes %d bytes", n)
	}
}
