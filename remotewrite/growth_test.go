package remotewrite

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/config"
)

// simulate runs growth against a receiver whose rate by the number of shards is given, for
// so many ticks behind, and returns the numbers of shards it went through.
func simulate(g *growth, ticks int, rate func(tick, shards int) int, look func(tick int, p *pace)) []int {
	var p pace
	went := []int{g.shards}
	g.begin()
	for tick := range ticks {
		n := rate(tick, g.shards)
		p.samples += uint64(n)
		p.requests += uint64(n / 2000)
		p.behind, p.open, p.slow = true, true, false
		if look != nil {
			look(tick, &p)
		}
		if n := g.next(p); n != went[len(went)-1] {
			went = append(went, n)
			g.begin()
		}
	}
	return went
}

func TestGrowth(t *testing.T) {
	const second, minute = 1, 60
	latency := func(_, shards int) int { return 20_000 * shards }
	bounded := func(at int) func(int, int) int {
		return func(_, shards int) int { return min(20_000*shards, at) }
	}
	for name, c := range map[string]struct {
		ticks    int
		min, max int
		rate     func(tick, shards int) int
		look     func(tick int, p *pace)
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
			look: func(_ int, p *pace) { p.slow = true },
		},
		"asked to go slower for it": {
			ticks: minute, rate: latency, want: []int{1, 2, 4, 2},
			look: func(tick int, p *pace) { p.slow = tick > 8*second },
		},
		"down": {
			ticks: 10 * minute, rate: func(int, int) int { return 0 }, want: []int{1},
			look: func(_ int, p *pace) { p.open = false },
		},
		"caught up": {
			ticks: 4 * minute, rate: latency, want: []int{1, 2, 4, 2, 1},
			look: func(tick int, p *pace) { p.behind = tick < 9*second },
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := &growth{min: max(c.min, 1), max: c.max}
			if g.shards = g.min; g.max == 0 {
				g.max = config.MaxShards
			}
			if got := simulate(g, c.ticks, c.rate, c.look); !slices.Equal(got, c.want) {
				t.Errorf("shards went %v, want %v", got, c.want)
			}
		})
	}
}

// behind runs a queue that has a backlog for so long, and returns how many samples it
// delivered and the numbers of shards it had.
func behind(t *testing.T, to *fakeReceiver, took time.Duration) (sent uint64, went []int) {
	t.Helper()
	r := newRig(t, to)
	r.cfg.Queue.MaxSamplesPerSend, r.cfg.Queue.Capacity = 20, 100
	for range 500 {
		r.round(200)
	}
	r.start()
	for end := time.Now().Add(took); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		s := r.q.Status()
		if len(went) == 0 || went[len(went)-1] != s.Shards {
			went = append(went, s.Shards)
		}
		if s.State != StateBehind && s.Sent > 0 {
			t.Fatalf("not behind: %+v", s)
		}
	}
	sent = r.q.Status().Sent
	r.end()
	r.verify()
	return sent, went
}

// A receiver that is far away gets more requests at a time, and the backlog is delivered
// the quicker.
func TestShardsGrowAgainstLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent, went := behind(t, &fakeReceiver{latency: 100 * time.Millisecond}, 30*time.Second)
		if want := []int{1, 2, 4, 8, 16}; !slices.Equal(went, want) {
			t.Errorf("shards went %v, want %v", went, want)
		}
		if one := uint64(30 * 10 * 20); sent < 5*one {
			t.Errorf("%d samples delivered, want at least 5 times the %d that one shard delivers", sent, one)
		}
	})
}

// One whose rate is bounded gets no more for nothing: twice the shards are tried, and
// given up again.
func TestShardsDoNotGrowForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &fakeReceiver{}
		var free time.Time // when it has worked off what it was sent
		to.pace = func(now time.Time) time.Duration {
			if free.Before(now) {
				free = now
			}
			free = free.Add(50 * time.Millisecond)
			return free.Sub(now)
		}
		sent, went := behind(t, to, 4*time.Minute)
		if want := []int{1, 2, 1}; !slices.Equal(went, want) {
			t.Errorf("shards went %v, want %v", went, want)
		}
		if all := uint64(240 * 20 * 20); sent < all*95/100 {
			t.Errorf("%d samples delivered of the %d that the receiver takes", sent, all)
		}
	})
}
