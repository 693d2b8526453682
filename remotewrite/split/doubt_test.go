package split

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
)

// After the loss of a savepoint the whole log may be stored already. The number of requests to find out is
// bounded by the number of full-size requests, and work and memory are proportional to the samples, whatever the number of
// samples per series.
func TestManySamplesInDoubt(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: one goroutine, of which the race detector has nothing to say")
	}
	const series, limit = 1000, 2000
	for _, partitions := range []int{1, 16} {
		for _, window := range []bool{false, true} {
			for _, stored := range []int{0, 1, 50, 100} { // percent of the rounds
				t.Run(fmt.Sprintf("partitions=%d/window=%t/stored=%d%%", partitions, window, stored), func(t *testing.T) {
					bytes := map[int]float64{}
					for _, rounds := range []int{50, 520} {
						bytes[rounds] = findOut(t, series, rounds, stored*rounds/100, partitions, limit, window)
					}
					if few, many := bytes[50], bytes[520]; many > 2*few {
						t.Errorf("%.0f bytes a sample with 520 of each series, %.0f with 50", many, few)
					}
				})
			}
		}
	}
}

// findOut runs a machine on samples in doubt, of which the first rounds are stored, and returns how many bytes were allocated for each sample.
func findOut(t *testing.T, series, rounds, stored, partitions, limit int, window bool) float64 {
	t.Helper()
	samples := make([]Sample, 0, series*rounds)
	for round := range rounds {
		for s := range series {
			samples = append(samples, Sample{Series: uint64(s), T: int64(round), Partition: uint16(s % partitions), Sent: true, Aged: true})
		}
	}
	newest := make([]int64, series)
	for s := range newest {
		newest[s] = int64(stored) - 1
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m := New(Config{Limit: limit, Turns: FullTurns}, samples)
	requests, outcomes := 0, map[Outcome]int{}
	for r, ok := m.Next(); ok; r, ok = m.Next() {
		requests++
		reply := Reply{Kind: Took}
		for _, i := range r.Samples {
			if x := samples[i]; !window && x.T < newest[x.Series] {
				reply.Kind = Late
			}
		}
		if reply.Kind == Took {
			for _, i := range r.Samples {
				newest[samples[i].Series] = max(newest[samples[i].Series], samples[i].T)
			}
			outcomes[Delivered] += len(r.Samples)
		}
		m.Tell(reply)
		for _, v := range m.Verdicts() {
			outcomes[v.Outcome] += len(v.Samples)
		}
	}
	runtime.ReadMemStats(&after)
	if n := outcomes[Delivered] + outcomes[Resent]; n != len(samples) || len(m.Open()) > 0 {
		t.Errorf("%d rounds: %d of %d samples are delivered or stored: %v", rounds, n, len(samples), outcomes)
	}
	// A round takes one request per partition; in a stored one, two samples stand for the others.
	most := partitions * (3*rounds + 20)
	if stored == 0 || window { // nothing is refused
		most = rounds * max(series/limit, 1)
	}
	if requests > most {
		t.Errorf("%d rounds: %d requests for %d samples, want at most %d", rounds, requests, len(samples), most)
	}
	t.Logf("%d rounds: %d requests", rounds, requests)
	return float64(after.TotalAlloc-before.TotalAlloc) / float64(len(samples))
}

// A sample that was accepted as a test of a held target proves that the late one before it in its series is stored; a dropped one proves nothing.
func TestGone(t *testing.T) {
	for _, tested := range []bool{true, false} {
		m := New(Config{Limit: 10, Turns: FullTurns}, []Sample{{Series: 1, T: 1, Sent: true}, {Series: 1, T: 2, Sent: true}})
		if r, ok := m.Next(); !ok || !slices.Equal(r.Samples, []int{0}) {
			t.Fatalf("the first request is %+v", r)
		}
		m.Tell(Reply{Kind: Late})
		if r, ok := m.Next(); !ok || !slices.Equal(r.Samples, []int{1}) {
			t.Fatalf("the second request is %+v", r)
		}
		want := Rejected
		if tested {
			want = Resent
			m.Gone([]int{1}, nil)
		} else {
			m.Gone(nil, []int{1})
		}
		m.Tell(Reply{Kind: Took})
		if r, ok := m.Next(); ok {
			t.Fatalf("the third request is %+v", r)
		}
		v := m.Verdicts()
		v = slices.DeleteFunc(v, func(v Verdict) bool { return len(v.Samples) == 0 })
		if len(v) != 1 || v[0].Outcome != want || !slices.Equal(v[0].Samples, []int{0}) {
			t.Errorf("tested %t: %+v, want outcome %d for the first sample", tested, v, want)
		}
	}
}
