package refs

import (
	"math/bits"
	"math/rand/v2"
)

// Positions finds the positions of a list by hashes. Values with equal hashes may be in the list; the caller
// distinguishes them. It takes 12 to 16 bytes per position and is quick to build, so it need not exist as long as the list.
// [NewPositions] makes one. Not safe for concurrent use.
type Positions struct {
	key   uint64     // odd, as in [Chains]
	heads []uint32   // the chains: the newest position, plus 1; a power of two of them, not fewer than positions
	all   []position // by position
}

// position is an entry of a chain.
type position struct {
	hash uint32 // mixed with the key
	next uint32 // the next older position of the chain, plus 1; 0 at its end
}

// NewPositions returns an empty table with room for n positions.
func NewPositions(n int) *Positions {
	return &Positions{
		key:   rand.Uint64() | 1, // #nosec G404 -- runtime's ChaCha8, seeded by the system
		heads: make([]uint32, 1<<bits.Len(uint(max(n, 8)-1))),
		all:   make([]position, 0, n),
	}
}

// Len returns the number of positions.
func (p *Positions) Len() int { return len(p.all) }

// Add adds the next position, which has that hash.
func (p *Positions) Add(hash uint64) {
	if len(p.all) == len(p.heads) {
		p.grow()
	}
	p.all = append(p.all, position{hash: p.mix(hash)})
	p.link(len(p.all) - 1)
}

// Find returns the newest position for which is returns true, -1 if there is none. All such positions must have that
// hash. Find may also call is for positions with other hashes.
func (p *Positions) Find(hash uint64, is func(int) bool) int {
	mixed := p.mix(hash)
	for at := *p.head(mixed); at != 0; at = p.all[at-1].next {
		if p.all[at-1].hash == mixed && is(int(at-1)) {
			return int(at - 1)
		}
	}
	return -1
}

// Pop removes the last position.
func (p *Positions) Pop() {
	if len(p.all) == 0 {
		return
	}
	last := p.all[len(p.all)-1]
	*p.head(last.hash) = last.next
	p.all = p.all[:len(p.all)-1]
}

// Clear removes all positions. The memory of the table stays.
func (p *Positions) Clear() {
	clear(p.heads)
	p.all = p.all[:0]
}

func (p *Positions) mix(hash uint64) uint32 {
	hash *= p.key
	return uint32(hash ^ hash>>32) // #nosec G115 -- a part of it
}

func (p *Positions) head(mixed uint32) *uint32 { return &p.heads[int(mixed)&(len(p.heads)-1)] }

// link puts a position at the head of its chain.
func (p *Positions) link(i int) {
	head := p.head(p.all[i].hash)
	p.all[i].next, *head = *head, uint32(i+1) // #nosec G115 -- memory ends before 2^32 positions
}

// grow doubles the number of chains.
func (p *Positions) grow() {
	p.heads = make([]uint32, 2*len(p.heads))
	for i := range p.all {
		p.link(i)
	}
}
