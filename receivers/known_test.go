package receivers

import (
	"hash/maphash"
	"strings"
	"testing"
	"time"
)

// TestKnownSeriesWithOneHash: a hash never stands for a series; its bytes do.
func TestKnownSeriesWithOneHash(t *testing.T) {
	k, now := newKnownSeries(), time.Now()
	k.find(nil, now) // begins the first generation
	a, b := &Known{key: "a"}, &Known{key: "b"}
	k.put(a)
	if got := k.find([]byte("a"), now); got != a {
		t.Fatalf("%v", got)
	}
	k.young[maphash.String(k.seed, "a")] = b
	if got := k.find([]byte("a"), now); got != nil {
		t.Errorf("the series %q is found as a", got.key)
	}
	now = now.Add(knownFor)
	if got := k.find([]byte("a"), now); got != nil || len(k.old) != 1 {
		t.Errorf("the series %v is found as a in the generation before, of %d", got, len(k.old))
	}
}

// TestKnownSeriesAreBounded: memory is bounded, a series that is sent stays, and one that is not sent is forgotten.
func TestKnownSeriesAreBounded(t *testing.T) {
	k, now := newKnownSeries(), time.Now()
	k.find(nil, now)
	first := &Known{key: "first"}
	k.put(first)
	long := strings.Repeat("x", 1<<20)
	for i := range 100 {
		k.put(&Known{key: string(rune('A'+i)) + long})
	}
	if k.bytes > knownBytes || len(k.young) < 20 || len(k.young) > 32 {
		t.Errorf("%d series of %d bytes", len(k.young), k.bytes)
	}
	for range 3 {
		now = now.Add(knownFor)
		if k.find([]byte("first"), now) != first {
			t.Fatal("a series that is sent is forgotten")
		}
	}
	if len(k.young)+len(k.old) != 2 || k.young[maphash.String(k.seed, "first")] != first {
		t.Errorf("%d and %d series are known", len(k.young), len(k.old))
	}
}
