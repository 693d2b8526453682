package mutate

import (
	"bytes"
	"math/rand/v2"
	"slices"
)

// Bytes returns the ways to damage any bytes; valid makes correct ones.
func Bytes(valid func(rnd *rand.Rand) []byte) []Content {
	var all []Content
	for _, d := range damages() {
		all = append(all, Content{Name: d.name, Make: func(rnd *rand.Rand) Body { return Of(d.do(rnd, valid(rnd))) }})
	}
	return all
}

// Damage damages bytes in a random way.
func Damage(rnd *rand.Rand, b []byte) []byte {
	all := damages()
	return all[rnd.IntN(len(all))].do(rnd, b)
}

type damage struct {
	name string
	do   func(rnd *rand.Rand, b []byte) []byte
}

// maxNoise bounds inserted random bytes, and the length of a repeated piece.
const maxNoise = 4 << 10

func damages() []damage {
	return []damage{
		{"bits flipped", func(rnd *rand.Rand, b []byte) []byte {
			out := slices.Clone(b)
			for range min(len(out), 1+rnd.IntN(4)) {
				out[rnd.IntN(len(out))] ^= 1 << rnd.IntN(8)
			}
			return out
		}},
		{"cut off", func(rnd *rand.Rand, b []byte) []byte { return slices.Clone(b[:rnd.IntN(len(b)+1)]) }},
		{"a piece left out", func(rnd *rand.Rand, b []byte) []byte {
			from, to := span(rnd, len(b))
			return slices.Concat(b[:from], b[to:])
		}},
		{"a piece repeated", func(rnd *rand.Rand, b []byte) []byte {
			from, to := span(rnd, len(b))
			times := 1 + rnd.IntN(1+maxNoise/max(1, to-from))
			return slices.Concat(b[:to], bytes.Repeat(b[from:to], times), b[to:])
		}},
		{"two pieces swapped", func(rnd *rand.Rand, b []byte) []byte {
			from, to := span(rnd, len(b))
			mid := from + rnd.IntN(to-from+1)
			return slices.Concat(b[:from], b[mid:to], b[from:mid], b[to:])
		}},
		{"noise put in", func(rnd *rand.Rand, b []byte) []byte {
			at := rnd.IntN(len(b) + 1)
			return slices.Concat(b[:at], noise(rnd), b[at:])
		}},
		{"noise alone", func(rnd *rand.Rand, _ []byte) []byte { return noise(rnd) }},
		{"an extreme byte", func(rnd *rand.Rand, b []byte) []byte {
			out := slices.Clone(b)
			from, to := span(rnd, len(out))
			to = min(to, from+1+rnd.IntN(8))
			extreme := []byte{0, 0xff, 0x7f, 0x80, 0x01, '\n', '"', '{', '\\'}[rnd.IntN(9)]
			for i := from; i < to; i++ {
				out[i] = extreme
			}
			return out
		}},
		{"nothing", func(*rand.Rand, []byte) []byte { return nil }},
	}
}

// span returns a random range of n bytes: empty only if there are none.
func span(rnd *rand.Rand, n int) (from, to int) {
	if n == 0 {
		return 0, 0
	}
	from = rnd.IntN(n)
	return from, from + 1 + rnd.IntN(n-from)
}

func noise(rnd *rand.Rand) []byte {
	out := make([]byte, 1+rnd.IntN(maxNoise))
	for i := range out {
		out[i] = byte(rnd.Uint32())
	}
	return out
}

// pick returns one of some.
func pick[T any](rnd *rand.Rand, some ...T) T { return some[rnd.IntN(len(some))] }
