package refs

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestPositionsFindTheNewest: with hashes of any kind, and after positions were removed from the end or all of them, each hash leads to the newest position that
// the caller accepts, and hashes that are not there lead to none.
func TestPositionsFindTheNewest(t *testing.T) {
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
			p, all := NewPositions(r.IntN(20)), []uint64(nil)
			for range 40 {
				if r.IntN(10) == 0 {
					p.Clear()
					all = all[:0]
				}
				for range r.IntN(60) {
					if r.IntN(4) == 0 {
						p.Pop()
						all = all[:max(0, len(all)-1)]
						continue
					}
					h := hash(r)
					p.Add(h)
					all = append(all, h)
				}
				if p.Len() != len(all) {
					t.Fatalf("%d positions, want %d", p.Len(), len(all))
				}
				for range 50 {
					h, below := hash(r), r.IntN(len(all)+1)
					want := -1
					for i, o := range slices.Backward(all[:below]) {
						if o == h {
							want = i
							break
						}
					}
					if got := p.Find(h, func(i int) bool { return i < below && all[i] == h }); got != want {
						t.Fatalf("position %d below %d, want %d", got, below, want)
					}
				}
			}
		})
	}
}

// TestPositionsOfAnAttacker: hashes with equal low bits, which a sender can choose, do not fill one chain.
func TestPositionsOfAnAttacker(t *testing.T) {
	p := NewPositions(0)
	const n = 4096
	for i := range uint64(n) {
		p.Add(i << 40)
	}
	longest := 0
	for _, at := range p.heads {
		length := 0
		for ; at != 0; at = p.all[at-1].next {
			length++
		}
		longest = max(longest, length)
	}
	if longest > n/16 {
		t.Errorf("%d of %d positions are in one chain", longest, n)
	}
}
