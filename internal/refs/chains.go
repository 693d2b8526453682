package refs

import (
	"iter"
	"math/rand/v2"
)

// perPage is how many chains have their heads in one page.
const perPage = 256

// Chains is a hash table. Things with equal hashes may be in it; the caller distinguishes them. Each thing holds the
// link to the next one in its chain, so the table itself takes about eight bytes per thing, and a thing may be in
// several tables if it has a link for each. It uses linear hashing: adding or removing a thing moves the things of at
// most two other chains, so there is never a pause in which all are moved. [NewChains] makes one. Not safe for
// concurrent use.
type Chains[T any] struct {
	hash func(*T) uint64
	next func(*T) **T
	key  uint64 // odd; see at

	// heads are the chains, in pages of perPage; only the last page may be shorter. [Chains.at] says in which chain a
	// thing is.
	heads  [][]*T
	chains int    // not fewer than things, and at most twice as many
	mask   uint64 // the least power of two that is not below chains, less one
	n      int    // things
}

// NewChains returns an empty table. hash returns a thing's hash, which must not change while the thing is in the table.
// Hashes must be spread as if at random; an attacker who chooses things, but cannot read this process' memory, cannot
// force different hashes into one chain. next returns the thing's link, which belongs to the table.
func NewChains[T any](hash func(*T) uint64, next func(*T) **T) *Chains[T] {
	return &Chains[T]{hash: hash, next: next, key: rand.Uint64() | 1} // #nosec G404 -- runtime's ChaCha8, seeded by the system
}

// Len returns the number of things.
func (c *Chains[T]) Len() int { return c.n }

// Find returns the most recently added thing for which is returns true, nil if there is none. All such things must have
// that hash. Find may also call is for things with other hashes; is must not change the table.
func (c *Chains[T]) Find(hash uint64, is func(*T) bool) *T {
	if c.n == 0 {
		return nil
	}
	for thing := *c.head(c.at(hash)); thing != nil; thing = *c.next(thing) {
		if is(thing) {
			return thing
		}
	}
	return nil
}

// Add adds a thing that is not in the table.
func (c *Chains[T]) Add(thing *T) {
	if c.n++; c.n > c.chains {
		c.split()
	}
	head := c.head(c.at(c.hash(thing)))
	*c.next(thing), *head = *head, thing
}

// Remove removes a thing, if it is in the table.
func (c *Chains[T]) Remove(thing *T) {
	if c.n == 0 {
		return
	}
	for at := c.head(c.at(c.hash(thing))); *at != nil; at = c.next(*at) {
		if *at == thing {
			*at, *c.next(thing) = *c.next(thing), nil
			c.n--
			c.shrink()
			return
		}
	}
}

// RemoveIf removes all things for which gone returns true. gone must not change the table.
func (c *Chains[T]) RemoveIf(gone func(*T) bool) {
	for i := range c.chains {
		for at := c.head(i); *at != nil; {
			thing := *at
			if !gone(thing) {
				at = c.next(thing)
				continue
			}
			*at, *c.next(thing) = *c.next(thing), nil
			c.n--
		}
	}
	c.shrink()
}

// All returns the things, in no particular order. The table must not change meanwhile.
func (c *Chains[T]) All() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range c.chains {
			for thing := *c.head(i); thing != nil; thing = *c.next(thing) {
				if !yield(thing) {
					return
				}
			}
		}
	}
}

// at returns the number of the chain of a hash: low bits of its product with the key, mixed with the high bits, or one
// bit less if that chain does not exist yet. The key is needed because the hash of labels is the same in every process:
// a sender could choose series whose hashes have equal low bits.
func (c *Chains[T]) at(hash uint64) int {
	hash *= c.key
	hash ^= hash >> 32
	if i := hash & c.mask; i < uint64(c.chains) { // #nosec G115 -- a count
		return int(i) // #nosec G115 -- below a count
	}
	return int(hash & (c.mask >> 1)) // #nosec G115 -- likewise
}

// head returns the head of a chain.
func (c *Chains[T]) head(i int) **T { return &c.heads[i/perPage][i%perPage] }

// split adds one chain. It takes the things whose new bit is set from the chain with one bit less.
func (c *Chains[T]) split() {
	last := len(c.heads) - 1
	if last < 0 || len(c.heads[last]) == perPage {
		c.heads = append(c.heads, nil)
		last++
	}
	c.heads[last] = append(c.heads[last], nil)
	i := c.chains
	if c.chains++; uint64(i) > c.mask { // #nosec G115 -- a count
		c.mask = 2*c.mask + 1
	}
	if i == 0 {
		return
	}
	from, to := c.head(i&int(c.mask>>1)), c.head(i) // #nosec G115 -- a mask of counts
	for *from != nil {
		thing := *from
		if c.at(c.hash(thing)) != i {
			from = c.next(thing)
			continue
		}
		*from, *c.next(thing), *to = *c.next(thing), nil, thing
		to = c.next(thing)
	}
}

// shrink removes chains that are not needed: the things of the last chains return to those from which they were split.
func (c *Chains[T]) shrink() {
	for 2*c.n < c.chains {
		i, last := c.chains-1, len(c.heads)-1
		if i > 0 {
			to := c.head(i & int(c.mask>>1)) // #nosec G115 -- a mask of counts
			for *to != nil {
				to = c.next(*to)
			}
			*to, *c.head(i) = *c.head(i), nil
		}
		c.heads[last] = c.heads[last][:len(c.heads[last])-1]
		if len(c.heads[last]) == 0 {
			c.heads[last] = nil
			c.heads = c.heads[:last]
		}
		if c.chains--; c.chains > 0 && uint64(c.chains-1) <= c.mask>>1 { // #nosec G115 -- a count
			c.mask >>= 1
		}
	}
}
