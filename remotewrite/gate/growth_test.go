package gate

import (
	"slices"
	"testing"
)

// simulate runs growth against a receiver whose rate by the number of shards is given, for
// so many ticks behind, and returns the numbers of shards it went through.
func simulate(g *Growth, ticks int, rate func(tick, shards int) int, look func(tick int, p *Seen)) []int {
	var p Seen
	went := []int{g.Shards}
	g.Begin()
	for tick := range ticks {
		n := rate(tick, g.Shards)
		p.Samples += uint64(n)
		p.Requests += uint64(n / 2000)
		p.Behind, p.Open, p.Slow = true, true, false
		if look != nil {
			look(tick, &p)
		}
		if n := g.Next(p); n != went[len(went)-1] {
			went = append(went, n)
			g.Begin()
		}
	}
	return went
}

func TestGrowth(t *testing.T) {
	const second, minute, most = 1, 60, 16
	latency := func(_, shards int) int { return 20_000 * shards }
	bounded := func(at int) func(int, int) int {
		return func(_, shards int) int { return min(20_000*shards, at) }
	}
	for name, c := range map[string]struct {
		ticks    int
		min, max int
		rate     func(tick, shards int) int
		look     func(tick int, p *Seen)
		want     []int
	}{
		"latency is the bound": {ticks: minute, rate: latency, want: []int{1, 2, 4, 8, 16}},
		"max_shards":           {ticks: minute, max: 4, rate: latency, want: []int{1, 2, 4}},
		"min_shards":           {ticks: minute, min: 4, max: 8, rate: bounded(20_000), want: []int{4, 8, 4}},
		"one shard is enough":  {ticks: 5 * minute, rate: bounded(20_000), want: []int{1, 2, 1}},
		"four are enough":      {ticks: 5 * minute, rate: bounded(80_000), want: []int{1, 2, 4, 8, 4}},
		"a little is gained":   {ticks: 5 * minute, rate: func(_, shards int) int { return 400_000 + 20_000*shards }, want: []int{1, 2, 1}},
		"tried again at times": {ticks: 16 * minute, rate: bounded(20_000), want: []int{1, 2, 1, 2, 1, 2, 1, 2, 1}},
		"slow requests are waited for": {ticks: 10 * minute, rate: func(tick, shards int) int {
			if tick%10 != 0 { // all answers at once, each 10 s
				return 0
			}
			return 2_000 * shards
		}, want: []int{1, 2, 4, 8, 16}},
		"it becomes quicker": {ticks: 6 * minute, rate: func(tick, shards int) int {
			if tick < minute {
				return 20_000
			}
			return 20_000 * shards
		}, want: []int{1, 2, 1, 2, 4, 8, 16}},
		"asked to go slower before": {
			ticks: minute, rate: latency, want: []int{1},
			look: func(_ int, p *Seen) { p.Slow = true },
		},
		"asked to go slower for it": {
			ticks: minute, rate: latency, want: []int{1, 2, 4, 2},
			look: func(tick int, p *Seen) { p.Slow = tick > 8*second },
		},
		"down": {
			ticks: 10 * minute, rate: func(int, int) int { return 0 }, want: []int{1},
			look: func(_ int, p *Seen) { p.Open = false },
		},
		"caught up": {
			ticks: 4 * minute, rate: latency, want: []int{1, 2, 4, 2, 1},
			look: func(tick int, p *Seen) { p.Behind = tick < 9*second },
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := &Growth{Min: max(c.min, 1), Max: c.max}
			if g.Shards = g.Min; g.Max == 0 {
				g.Max = most
			}
			if got := simulate(g, c.ticks, c.rate, c.look); !slices.Equal(got, c.want) {
				t.Errorf("shards went %v, want %v", got, c.want)
			}
		})
	}
}
