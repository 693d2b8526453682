package refs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

type link struct {
	hash uint64
	id   int
	next *link
}

func newLinks() *Chains[link] {
	return NewChains(func(l *link) uint64 { return l.hash }, func(l *link) **link { return &l.next })
}

// checkLinks compares a table with the things that it must have, in the order in which they were added.
func checkLinks(t *testing.T, c *Chains[link], want []*link) {
	t.Helper()
	if c.Len() != len(want) || c.chains < len(want) || c.chains > 2*len(want) {
		t.Fatalf("%d things in %d chains, want %d", c.Len(), c.chains, len(want))
	}
	all := slices.Collect(c.All())
	slices.SortFunc(all, func(a, b *link) int { return a.id - b.id })
	if !slices.Equal(all, want) {
		t.Fatalf("%d things, want %d others", len(all), len(want))
	}
	newest := map[uint64]*link{}
	for _, l := range want {
		newest[l.hash] = l
		if got := c.Find(l.hash, func(o *link) bool { return o == l }); got != l {
			t.Fatalf("%+v is not found", l)
		}
	}
	for hash, l := range newest {
		if got := c.Find(hash, func(o *link) bool { return o.hash == hash }); got != l {
			t.Fatalf("found %+v, want the newest of its hash, %+v", got, l)
		}
	}
}

// TestChainsAreAMap: after any additions and removals, with hashes of any kind, the table has what a plain list has.
func TestChainsAreAMap(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for name, hash := range map[string]func(*rand.Rand) uint64{
		"by chance":         (*rand.Rand).Uint64,
		"few":               func(r *rand.Rand) uint64 { return r.Uint64N(20) },
		"all alike":         func(*rand.Rand) uint64 { return 7 },
		"alike in low bits": func(r *rand.Rand) uint64 { return r.Uint64() << 60 },
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			c, want, id := newLinks(), []*link(nil), 0
			for step := range 300 {
				grow := 3 + 2*(step/75%2) // of 8: more come, then more go
				for range r.IntN(30) {
					if r.IntN(8) < grow || len(want) == 0 {
						l := &link{hash: hash(r), id: id}
						id++
						c.Add(l)
						want = append(want, l)
						continue
					}
					i := r.IntN(len(want))
					c.Remove(want[i])
					if want[i].next != nil {
						t.Fatal("what was removed has a link")
					}
					c.Remove(want[i]) // it is not there any more
					want = slices.Delete(want, i, i+1)
				}
				if r.IntN(40) == 0 {
					mod := 1 + r.IntN(4) // 1: all
					c.RemoveIf(func(l *link) bool { return l.id%mod == 0 })
					want = slices.DeleteFunc(want, func(l *link) bool { return l.id%mod == 0 })
				}
				checkLinks(t, c, want)
			}
		})
	}
}

// TestChainsGrowOverPages: many things, and all of them removed again, leave no memory behind.
func TestChainsGrowOverPages(t *testing.T) {
	c, all := newLinks(), []*link(nil)
	r := rand.New(rand.NewPCG(1, 2))
	for id := range 5*perPage + 3 {
		all = append(all, &link{hash: r.Uint64(), id: id})
		c.Add(all[id])
	}
	checkLinks(t, c, all)
	longest := 0
	for i := range c.chains {
		n := 0
		for l := *c.head(i); l != nil; l = l.next {
			n++
		}
		longest = max(longest, n)
	}
	if longest > 12 {
		t.Errorf("%d things are in one of %d chains", longest, c.chains)
	}
	for len(all) > 0 {
		c.Remove(all[0])
		all = all[1:]
		if len(all)%100 == 0 {
			checkLinks(t, c, all)
		}
	}
	if len(c.heads) != 0 || c.chains != 0 || c.mask != 0 {
		t.Errorf("%d pages, %d chains, mask %d are left", len(c.heads), c.chains, c.mask)
	}
	if c.Find(1, func(*link) bool { return true }) != nil {
		t.Error("an empty table finds something")
	}
}

// BenchmarkFind compares the chains with a map of the same things.
func BenchmarkFind(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		r := rand.New(rand.NewPCG(1, 2))
		c, m, all := newLinks(), map[uint64]*link{}, make([]*link, n)
		for i := range all {
			all[i] = &link{hash: r.Uint64(), id: i}
			c.Add(all[i])
			m[all[i].hash] = all[i]
		}
		b.Run(fmt.Sprintf("chains/%d", n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				l := all[i%n]
				if c.Find(l.hash, func(o *link) bool { return o.hash == l.hash }) == nil {
					b.Fatal("lost")
				}
			}
		})
		b.Run(fmt.Sprintf("map/%d", n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if m[all[i%n].hash] == nil {
					b.Fatal("lost")
				}
			}
		})
	}
}
