package receivers

import (
	"strings"
	"testing"
	"time"
)

// TestTableIsBounded: memory is bounded, what is sent stays, and what is not sent is forgotten.
func TestTableIsBounded(t *testing.T) {
	const most = 1 << 20
	k, now := NewTable[int](most), time.Now()
	k.Find(nil, now) // begins the first generation
	k.Put("first", 1, 5)
	for i := range 100 {
		k.Put(string(rune('A'+i)), i, most/20)
		k.Put("A", 0, most/20) // a second time counts once
	}
	if k.bytes > most || len(k.young) < 19 || len(k.young) > 21 {
		t.Errorf("%d entries of %d bytes", len(k.young), k.bytes)
	}
	for range 3 {
		now = now.Add(knownFor)
		if v, ok := k.Find([]byte("first"), now); !ok || v != 1 {
			t.Fatal("what is sent is forgotten")
		}
	}
	if len(k.young)+len(k.old) != 2 || k.bytes != 5 {
		t.Errorf("%d and %d are known, of %d bytes", len(k.young), len(k.old), k.bytes)
	}
	if _, ok := k.Find([]byte("B"), now); ok {
		t.Error("what is not sent stays")
	}
}

// TestTableTellsKeysApart: only equal bytes are equal.
func TestTableTellsKeysApart(t *testing.T) {
	k, now := NewTable[string](1<<20), time.Now()
	k.Find(nil, now)
	for _, key := range []string{"", "a", "b", "a\x00", strings.Repeat("a", 1000)} {
		if v, ok := k.Find([]byte(key), now); ok {
			t.Errorf("%.20q is found as %.20q", key, v)
		}
		k.Put(key, key, len(key))
		if v, ok := k.Find([]byte(key), now); !ok || v != key {
			t.Errorf("%.20q is found as %.20q", key, v)
		}
	}
}
