package remotewrite

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// modelReceiver answers an isolation's requests. Samples are (series, time) pairs.
type modelReceiver struct {
	keeps  bool
	bad    map[int]bool
	newest map[uint64]int // by series: the round stored last
	late   bool           // why the last was refused
}

func (m *modelReceiver) send(at []int, series []uint64, round []int) (taken bool) {
	taken, m.late = true, false
	before := map[uint64]int{}
	for _, i := range at {
		h := series[i]
		last, ok := m.newest[h]
		if _, seen := before[h]; !seen {
			before[h] = -1
			if ok {
				before[h] = last
			}
		}
		switch {
		case m.bad[i]:
			taken = false
		case ok && round[i] < last:
			taken, m.late = false, true
		default:
			m.newest[h] = round[i]
		}
	}
	if !taken && !m.keeps {
		for h, r := range before {
			if r < 0 {
				delete(m.newest, h)
			} else {
				m.newest[h] = r
			}
		}
	}
	return taken
}

// The plan finds the bad samples at both kinds of receiver, within the budget, and gives
// up no good one while the budget lasts.
func TestIsolationFindsBadSamples(t *testing.T) {
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		series, perSeries := 3+rnd.IntN(300), 1+rnd.IntN(6)
		var hashes []uint64
		var round []int
		var spans []span
		for r := range perSeries {
			spans = append(spans, span{r * series, (r + 1) * series})
			for s := range series {
				hashes, round = append(hashes, uint64(s)), append(round, r)
			}
		}
		m := &modelReceiver{keeps: seed%2 == 1, bad: map[int]bool{}, newest: map[uint64]int{}}
		for range 1 + rnd.IntN(2) {
			m.bad[rnd.IntN(len(hashes))] = true
		}
		all := make([]int, len(hashes))
		for i := range all {
			all[i] = i
		}
		if m.send(all, hashes, round) {
			t.Fatal("the batch was taken")
		}
		p := newIsolation(unknownReceiver, hashes, spans, true, isolateBudget)
		sent := 0
		for {
			at, ok := p.next()
			if !ok {
				break
			}
			if sent++; sent > isolateBudget {
				t.Fatalf("seed %d: more than %d requests", seed, isolateBudget)
			}
			if m.send(at, hashes, round) {
				p.accepted()
			} else {
				p.refused("", m.late, false)
			}
		}
		bad, stored, unknown, suspects := p.result()
		what := fmt.Sprintf("seed %d: keeps=%v %d series, %d rounds, bad %v", seed, m.keeps, series, perSeries, m.bad)
		if n := p.passed + len(bad) + len(stored) + len(unknown) + len(suspects); n != len(hashes) {
			t.Errorf("%s: %d of %d samples have an outcome", what, n, len(hashes))
		}
		if m.keeps && len(unknown)+len(suspects) > 0 {
			continue // which of the older samples was bad cannot be known
		}
		for i := range m.bad {
			if !slices.Contains(bad, i) && !slices.Contains(stored, i) {
				t.Errorf("%s: %d was not found", what, i)
			}
		}
		if !m.keeps && (len(bad) != len(m.bad) || len(unknown) > 0) {
			t.Errorf("%s: found %v, unknown %v after %d requests", what, bad, unknown, sent)
		}
	}
}

func TestGrouping(t *testing.T) {
	ss := testSeries(50)
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		var points []point
		for i := range rnd.IntN(400) {
			points = append(points, point{series: ss[rnd.IntN(1+rnd.IntN(50))], seq: uint64(i / 20), t: int64(i)})
		}
		var g grouper
		got := slices.Clone(g.group(slices.Clone(points)))
		want := slices.Clone(points)
		first := map[uint64]int{}
		for i, p := range points {
			if _, ok := first[p.series.hash]; !ok {
				first[p.series.hash] = i
			}
		}
		slices.SortStableFunc(want, func(a, b point) int { return first[a.series.hash] - first[b.series.hash] })
		if len(points) > 0 && points[0].seq == points[len(points)-1].seq {
			want = points
		}
		if !slices.EqualFunc(got, want, func(a, b point) bool { return a.same(b) }) {
			t.Fatalf("seed %d: grouped otherwise than by first appearance", seed)
		}
	}
}

// At a receiver that keeps the good part the older samples of a series count as stored once its newest is
// taken, but not if the receiver called one sample too old: then these may be too old as well.
func TestIsolationTakesNothingTooOldForStored(t *testing.T) {
	for _, tooOld := range []bool{false, true} {
		p := newIsolation(keepsGood, []uint64{0, 1, 2, 0, 1, 2}, []span{{0, 3}, {3, 6}}, true, isolateBudget)
		for at, ok := p.next(); ok; at, ok = p.next() {
			if slices.ContainsFunc(at, func(i int) bool { return i%3 == 0 }) {
				p.refused("refused", true, tooOld)
			} else {
				p.accepted()
			}
		}
		if _, stored, _, _ := p.result(); (len(stored) == 0) != tooOld {
			t.Errorf("too old=%t: samples %v count as stored", tooOld, stored)
		}
	}
}
