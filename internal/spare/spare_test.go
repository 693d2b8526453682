package spare

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// TestStack: the thing that was put back last is given first; collections of garbage leave a few unused things, and drop those of a burst.
func TestStack(t *testing.T) {
	const burst = 100
	var s Stack[[1 << 10]byte]
	var dropped atomic.Int32
	for range burst {
		thing := new([1 << 10]byte)
		runtime.AddCleanup(thing, func(int) { dropped.Add(1) }, 0)
		s.Put(thing)
	}
	for range 20 { // a cleanup runs some time after its collection
		runtime.GC()
		runtime.Gosched()
		if dropped.Load() == burst-kept {
			break
		}
	}
	if n := dropped.Load(); n != burst-kept {
		t.Errorf("collections dropped %d of %d things, want %d", n, burst, burst-kept)
	}
	first, second, none := s.Take(), s.Take(), s.Take()
	if first == nil || second == nil || none != nil {
		t.Fatalf("after collections: %t, %t, %t", first != nil, second != nil, none != nil)
	}
	s.Put(second)
	s.Put(first)
	if got := s.Take(); got != first {
		t.Error("the thing put back last was not given first")
	}
}
