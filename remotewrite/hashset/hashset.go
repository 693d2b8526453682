// Package hashset has a set of hashes for hot paths.
package hashset

import "math/bits"

// Set is a set of hashes, faster than a map: each sample may pass through one. The zero value needs Clear before the
// first Add.
type Set struct {
	slots []slot // the length is a power of two, at least twice what Clear made room for
	turn  uint32 // a slot with another turn is empty
}

type slot struct {
	hash uint64
	turn uint32
}

// Clear empties the set and makes room for n hashes.
func (s *Set) Clear(n int) {
	s.turn++
	if size := 1 << bits.Len(uint(2*n)); size > len(s.slots) || s.turn == 0 {
		s.slots, s.turn = make([]slot, size), 1
	}
}

// Add adds a hash; it returns false if the hash was in the set.
func (s *Set) Add(hash uint64) bool {
	mask := uint64(len(s.slots) - 1)
	// The low bits picked the shard, so they are equal for all series of a shard.
	for i := hash >> 32 & mask; ; i = (i + 1) & mask {
		switch at := &s.slots[i]; {
		case at.turn != s.turn:
			*at = slot{hash, s.turn}
			return true
		case at.hash == hash:
			return false
		}
	}
}
