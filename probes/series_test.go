package probes

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/storage"
)

// trackerModel is what a tracker must do, by maps of texts.
type trackerModel struct {
	known map[string]*modelSeries // by raw labels
	seen  map[string]int          // final labels -> the round
}

type modelSeries struct {
	final string
	round int
	timed bool
}

// gone returns the final labels that end with a round.
func (m *trackerModel) gone(round int) []string {
	ended := map[string]bool{}
	for raw, s := range m.known {
		if s.round == round {
			continue
		}
		delete(m.known, raw)
		if s.final != "" && m.seen[s.final] != round && !s.timed {
			ended[s.final] = true
		}
	}
	return slices.Sorted(maps.Keys(ended))
}

// TestTrackerIsAMap: through rounds in which series come, go, return, become one by relabelling, are removed by it or come
// twice, and through replacements of the tracker, it finds the same ends as maps of texts do.
func TestTrackerIsAMap(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	rules := []*relabel.Config{
		{Regex: relabel.MustNewRegexp("y"), Action: relabel.LabelDrop},
		{SourceLabels: model.LabelNames{"x"}, Regex: relabel.MustNewRegexp("7"), Action: relabel.Drop},
	}
	target := labels.FromStrings("job", "j")
	tr, m := newTracker(target, rules), &trackerModel{known: map[string]*modelSeries{}, seen: map[string]int{}}
	ends, refOf, nameOf := 0, map[string]storage.SeriesRef{}, map[storage.SeriesRef]string{}
	for round := 1; round < 400; round++ {
		if r.IntN(40) == 0 {
			next := newTracker(target, rules)
			next.adopt(tr)
			tr, m = next, m.adopt()
		}
		for range r.IntN(60) * r.IntN(3) / 2 {
			x, y := fmt.Sprint(r.IntN(12)), fmt.Sprint(r.IntN(2))
			s := Sample{Family: famA, Labels: []string{"x", x, "y", y}}
			one, got := tr.find(&s)
			raw, final := x+" "+y, labels.FromStrings("__name__", "a", "job", "j", "x", x).String()
			if x == "7" {
				final = ""
			}
			known := m.known[raw]
			if one.is(bad) || one.is(dropped) != (final == "") || known == nil && final != "" && got.String() != final || known != nil && !got.IsEmpty() {
				t.Fatalf("%s became %s, want %s", raw, got, final)
			}
			if known == nil {
				known = &modelSeries{final: final}
				m.known[raw] = known
			}
			if final != "" {
				if refOf[final] == 0 { // as the log has it
					refOf[final] = storage.SeriesRef(len(refOf) + 1)
					nameOf[refOf[final]] = final
				}
				known.timed = r.IntN(10) == 0
				one.set(timed, known.timed)
				one.ref = refOf[final]
				m.seen[final] = round
			}
			tr.mark(one, uint32(round))
			known.round = round
		}
		var ended []string
		for _, ref := range tr.gone(uint32(round), nil) {
			ended = append(ended, nameOf[ref])
		}
		slices.Sort(ended)
		if want := m.gone(round); !slices.Equal(ended, want) {
			t.Fatalf("round %d ends %q, want %q", round, ended, want)
		}
		ends += len(ended)
		if tr.series.Len() != len(m.known) {
			t.Fatalf("round %d: %d series, want %d", round, tr.series.Len(), len(m.known))
		}
		tr.endRound()
	}
	if ends == 0 {
		t.Error("no series ended")
	}
}

// adopt returns the model of a tracker that replaces m's.
func (m *trackerModel) adopt() *trackerModel {
	next := &trackerModel{known: map[string]*modelSeries{}, seen: map[string]int{}}
	for raw, s := range m.known {
		next.known["adopted "+raw] = &modelSeries{final: s.final, round: -1, timed: s.timed}
	}
	return next
}

// TestTrackedIsSmall: a fleet has a million of them.
func TestTrackedIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(tracked{}); n > 24 {
		t.Errorf("a series takes %d bytes, want at most 24", n)
	}
}

// TestFindAllocatesNothing: a sample of a known series takes no memory.
func TestFindAllocatesNothing(t *testing.T) {
	tr := newTracker(labels.FromStrings("job", "j"), nil)
	s := Sample{Family: famA, Labels: []string{"x", "1", "y", "2"}}
	round := uint32(1)
	if n := testing.AllocsPerRun(100, func() {
		one, _ := tr.find(&s)
		tr.mark(one, round)
		tr.endRound()
		round++
	}); n != 0 {
		t.Errorf("a sample allocates %v times", n)
	}
}

// heapInUse returns how much memory is reachable.
func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkTracker is a round of 1,200 series as a switch has them, in the same order each time or in another one; bytes/series are
// what the tracker keeps.
func BenchmarkTracker(b *testing.B) {
	const n = 1200
	var samples []Sample
	for i := range n {
		samples = append(samples, Sample{Family: &Family{Name: fmt.Sprint("ifHCInOctets", i/32)}, Labels: []string{
			"ifIndex", fmt.Sprint(i % 32), "ifDescr", fmt.Sprint("GigabitEthernet1/0/", i%32), "ifName", fmt.Sprint("Gi1/0/", i%32), "ifAlias", "",
		}})
	}
	shuffled := slices.Clone(samples)
	rand.Shuffle(n, func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	target := labels.FromStrings("instance", "192.0.2.17:161", "job", "fleet", "site", "fra1")
	run := func(tr *tracker, samples []Sample, round uint32) {
		for i := range samples {
			one, _ := tr.find(&samples[i])
			tr.mark(one, round)
		}
		tr.gone(round, nil)
		tr.endRound()
	}
	for name, later := range map[string][]Sample{"same": samples, "shuffled": shuffled} {
		b.Run("order="+name, func(b *testing.B) {
			all := make([]*tracker, 50)
			before := heapInUse()
			for k := range all {
				all[k] = newTracker(target, nil)
				run(all[k], samples, 1)
			}
			kept := float64(heapInUse()-before) / float64(n*len(all))
			round := uint32(1)
			for b.Loop() {
				round++
				run(all[int(round)%len(all)], later, round)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/sample")
			b.ReportMetric(kept, "bytes/series")
		})
	}
}
