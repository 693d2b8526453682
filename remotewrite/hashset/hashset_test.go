package hashset

import (
	"math"
	"testing"
)

// TestHashSet: the set has exactly what was added since it was cleared.
func TestHashSet(t *testing.T) {
	var s Set
	for _, n := range []int{1, 10, 2000, 5} {
		for _, shift := range []int{0, 4, 40} { // alike in the high bits, or in the low ones as in one shard
			s.Clear(n)
			for _, first := range []bool{true, false} {
				for i := range n {
					if hash := uint64(i) << shift; s.Add(hash) != first {
						t.Fatalf("of %d hashes, add(%#x) = %v", n, hash, !first)
					}
				}
			}
		}
	}
	s.turn = math.MaxUint32 // the next turn is one that old slots may have
	s.Clear(1)
	if !s.Add(0) || s.Add(0) {
		t.Error("a set that has turned over does not work")
	}
}
