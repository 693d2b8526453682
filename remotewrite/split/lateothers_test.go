package split

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// Some series are late because another sender stored newer samples of them: random series, or adjacent ones. Of the samples in doubt none is stored, all
// are, or any prefix. A good sample wrongly counts as stored if all samples sent alone for its round were of such series: for at most one of
// 1,000,000 samples if these series are one in 50 or fewer, and for one of 5,000 if they are more, up to a half.
// If each process was killed in the first round, after it delivered the good samples of that round, it is at most one of 2,000: the late samples left of it are no evidence for the
// other series.
func TestSeriesOfAnotherSender(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: one goroutine, of which the race detector has nothing to say")
	}
	for _, c := range []struct {
		series, partitions, late, beside, runs, most int
		killed                                       bool // in the first round
	}{
		{series: 12, partitions: 1, late: 1, beside: 6, runs: 5000, most: 5_000},
		{series: 22, partitions: 1, late: 3, beside: 1, runs: 3000, most: 5_000},
		{series: 22, partitions: 1, late: 1, beside: 3, runs: 3000, most: 5_000},
		{series: 60, partitions: 4, late: 6, beside: 1, runs: 1000, most: 5_000},
		{series: 60, partitions: 1, late: 1, beside: 1, runs: 1000, most: 1_000_000},
		{series: 200, partitions: 2, late: 20, beside: 1, runs: 300, most: 5_000},
		{series: 200, partitions: 1, late: 4, beside: 1, runs: 300, most: 1_000_000},
		{series: 1000, partitions: 1, late: 20, beside: 1, runs: 60, most: 1_000_000},
		{series: 1000, partitions: 1, late: 2, beside: 50, runs: 60, most: 5_000},
		{series: 16, partitions: 1, late: 8, beside: 1, runs: 3000, most: 2_000, killed: true},
		{series: 60, partitions: 1, late: 20, beside: 1, runs: 1000, most: 2_000, killed: true},
		{series: 200, partitions: 2, late: 20, beside: 1, runs: 300, most: 5_000, killed: true},
	} {
		t.Run(fmt.Sprintf("%d series in %d partitions, %d times %d are late, killed %t", c.series, c.partitions, c.late, c.beside, c.killed), func(t *testing.T) {
			samples, wrong, requests := 0, 0, 0
			for seed := range uint64(c.runs) {
				rnd := rand.New(rand.NewPCG(seed, 5))
				late := map[uint64]bool{}
				for range c.late {
					first := rnd.IntN(c.series)
					for n := range c.beside {
						late[uint64((first+n)%c.series)] = true
					}
				}
				all := c.series * (1 + rnd.IntN(6))
				stored, delivered := []int{0, all, rnd.IntN(all)}[rnd.IntN(3)], 0
				if c.killed {
					stored, delivered = c.series, c.series
				}
				w, n := besideAnother(t, c.series, all, stored, delivered, c.partitions, late, seed)
				samples, wrong, requests = samples+all, wrong+w, requests+n
			}
			t.Logf("%d of %d samples count as stored and are not, %.1f requests a sample", wrong, samples, float64(requests)/float64(samples))
			if wrong > samples/c.most {
				t.Errorf("%d of %d samples count as stored and are not, want at most one of %d", wrong, samples, c.most)
			}
		})
	}
}

// besideAnother runs a machine on samples in doubt, of which the first ones are stored; of these, the good ones among the first delivered ones are not in doubt. It returns how
// many good samples wrongly count as stored, and how many requests there were.
func besideAnother(t *testing.T, series, all, stored, delivered, partitions int, late map[uint64]bool, seed uint64) (wrong, requests int) {
	t.Helper()
	samples, has := make([]Sample, 0, all), make([]bool, 0, all)
	newest := map[uint64]int64{}
	for s := range late {
		newest[s] = 1 << 40
	}
	for i := range all {
		s := Sample{Series: uint64(i % series), T: int64(i / series), Partition: uint16(i % series % partitions), Sent: true, Aged: true}
		is := i < stored && !late[s.Series]
		if is {
			newest[s.Series] = s.T
		}
		if is && i < delivered {
			continue
		}
		samples, has = append(samples, s), append(has, is)
	}
	m := New(Config{Receiver: RollsBack, Limit: 2000, Turns: FullTurns, Seed: seed}, samples)
	outcomes := make([]Outcome, len(samples))
	decided := func() {
		for _, v := range m.Verdicts() {
			for _, i := range v.Samples {
				outcomes[i] = v.Outcome
			}
		}
	}
	for r, ok := m.Next(); ok; r, ok = m.Next() {
		requests++
		reply := Reply{Kind: Took}
		if slices.ContainsFunc(r.Samples, func(i int) bool { n, ok := newest[samples[i].Series]; return ok && samples[i].T < n }) {
			reply.Kind = Late
		}
		for _, i := range r.Samples {
			if reply.Kind == Took {
				newest[samples[i].Series], has[i], outcomes[i] = samples[i].T, true, Delivered
			}
		}
		m.Tell(reply)
		decided()
	}
	decided()
	for i, o := range outcomes {
		switch {
		case o == none:
			t.Fatalf("seed %d: sample %d has no outcome", seed, i)
		case o == Delivered && !has[i]:
			t.Fatalf("seed %d: sample %d is delivered and not stored", seed, i)
		case late[samples[i].Series]:
		case o == Rejected && !has[i]:
			t.Fatalf("seed %d: sample %d is good, and counts as rejected", seed, i)
		case o == Resent && !has[i]:
			wrong++
		}
	}
	return wrong, requests
}
