package quarantine

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"
)

var (
	modelSeed  = flag.Uint64("model.seed", 0, "replay this case of TestModel only")
	modelCases = flag.Int("model.cases", 300, "how many cases TestModel runs")
)

// The reasons of the model. The last one stands for words that are not known: it never comes to the book.
const (
	limit Reason = iota
	label
	conflict
	opaque
	numReasons
)

// one is a series of the model.
type one struct {
	bad   Reason // why it is refused whatever else; numReasons: it is not
	heals int    // the round from which it is taken
	mark  Mark
	taken bool
}

// model is a receiver, and a sender that does what the package remotewrite does with a book.
type model struct {
	t      *testing.T
	seed   uint64
	rnd    *rand.Rand
	b      *Book
	series []one
	every  time.Duration
	batch  int

	limit  int // of series
	raised int // the round from which there is none
	round  int
	now    time.Duration

	probes, trials                     int // requests
	dropped, letters                   int
	samples, healed, swallowed, missed int // samples; good ones that were dropped, as healed series', or as others'; and those that were not asked for
	healedLate                         int // rounds from the raised limit until the last series was taken
}

func newModel(t *testing.T, seed uint64) *model {
	rnd := rand.New(rand.NewPCG(seed, 0))
	m := &model{t: t, seed: seed, rnd: rnd, b: NewBook(seed), raised: 30 + rnd.IntN(20), limit: 1 << 30}
	m.every = []time.Duration{5 * time.Second, 15 * time.Second, time.Minute}[rnd.IntN(3)]
	m.batch = 20 + rnd.IntN(200)
	m.series = make([]one, 20+rnd.IntN(600))
	if rnd.IntN(2) == 0 {
		m.limit = rnd.IntN(len(m.series))
	}
	percent := []int{0, 1, 10, 40, 90}[rnd.IntN(5)]
	for i := range m.series {
		x := &m.series[i]
		x.bad, x.heals = numReasons, 1<<30
		if rnd.IntN(100) < percent {
			x.bad = label + Reason(rnd.IntN(3))
			if rnd.IntN(4) == 0 {
				x.heals = rnd.IntN(60)
			}
		}
	}
	return m
}

// refuses returns the reason for which a series is refused in this round, numReasons if it is accepted.
func (m *model) refuses(x *one) Reason {
	switch {
	case x.bad != numReasons && m.round < x.heals:
		return x.bad
	case x.taken, m.round >= m.raised:
	case m.limit <= 0:
		return limit
	default:
		m.limit--
	}
	x.taken = true
	return numReasons
}

// would reports whether a sample of a series would be accepted now.
func (m *model) would(x *one) bool {
	return (x.bad == numReasons || m.round >= x.heals) && (x.taken || m.round >= m.raised || m.limit > 0)
}

// send sends samples together to a receiver that keeps the good ones, and returns the first refusal.
func (m *model) send(at []int) Reason {
	first := numReasons
	for _, i := range at {
		if r := m.refuses(&m.series[i]); first == numReasons {
			first = r
		}
	}
	return first
}

func (m *model) step() {
	var batch []int
	for i := range m.series {
		x := &m.series[i]
		m.samples++
		if x.mark == 0 {
			batch = append(batch, i)
		} else {
			m.meet(i, &batch)
		}
		if len(batch) >= m.batch {
			m.deliver(batch)
			batch = nil
		}
	}
	m.deliver(batch)
	for _, n := range m.b.Letters(m.now, false) {
		m.letters += n
	}
}

func (m *model) meet(i int, batch *[]int) {
	x := &m.series[i]
	r := x.mark.Reason()
	mark, what := m.b.Meet(x.mark, uint64(m.round), m.now)
	x.mark = mark
	switch what {
	case Drop:
		m.dropped++
		m.lose(x)
	case Release:
		*batch = append(*batch, i)
	case Probe:
		m.probes++
		taken := m.send([]int{i}) == numReasons
		x.mark = m.b.Probed(mark, uint64(m.round), taken, m.now)
		if !taken {
			m.dropped++
		}
		if (x.mark == 0) != taken {
			m.t.Errorf("case %d: reason %d: a probe was taken: %t; its mark is %x", m.seed, r, taken, x.mark)
		}
	}
}

// lose counts a good sample that was dropped.
func (m *model) lose(x *one) {
	switch {
	case !m.would(x):
	case x.taken && x.heals == 1<<30 && m.round < m.raised:
		m.swallowed++
	default:
		m.healed++
	}
}

// deliver does what the sender does with a batch: the series that were taken first, then the newcomers.
func (m *model) deliver(batch []int) {
	var others, newcomers []int
	for _, i := range batch {
		if m.b.AnyKnown() && !m.series[i].taken {
			newcomers = append(newcomers, i)
		} else {
			others = append(others, i)
		}
	}
	for n, at := range [][]int{others, newcomers} {
		if len(at) == 0 {
			continue
		}
		r := m.send(at)
		if r != numReasons && (n == 0 || !m.try(at, r)) {
			m.bisect(at)
		}
	}
}

func (m *model) knows(r Reason) bool { return r < opaque && m.b.Known(r) }

// try reports whether all went into quarantine.
func (m *model) try(at []int, r Reason) bool {
	if !m.knows(r) {
		return false
	}
	m.b.Stop(r, m.now)
	trial := m.b.Try(r, len(at), m.now)
	for i, ok := trial.Next(); ok; i, ok = trial.Next() {
		m.trials++
		trial.Tell(m.knows(m.send(at[i : i+1])))
	}
	if !trial.Passed() {
		return false
	}
	for _, i := range at {
		m.series[i].mark = m.b.Put(r, uint64(m.round), m.now)
		m.lose(&m.series[i])
	}
	m.b.Dropped(r, len(at))
	m.dropped += len(at)
	return true
}

// bisect replaces the machine of package split: it sends samples alone, as long as it has requests. It knows the good ones, which
// the machine would find out, so that the counts show the effect of the quarantine only.
func (m *model) bisect(at []int) {
	const budget = 64
	asked := 0
	for _, i := range at {
		x := &m.series[i]
		if m.would(x) {
			m.refuses(x)
			continue
		}
		if asked += 4; asked > budget {
			m.missed++
			continue
		}
		if r := m.refuses(x); r < opaque {
			if m.b.Refused(r, uint64(i)); m.b.Known(r) && x.mark == 0 {
				m.b.Stop(r, m.now)
				x.mark = m.b.Put(r, uint64(m.round), m.now)
			}
		}
	}
}

// check compares the book with the marks.
func (m *model) check() {
	var counts [MaxReasons]int
	for i := range m.series {
		x := &m.series[i]
		if x.mark == 0 {
			continue
		}
		counts[x.mark.Reason()]++
	}
	got := m.b.Counts(m.now)
	for r, n := range counts {
		if got[Reason(r)] != n {
			m.t.Errorf("case %d, round %d: %d series of reason %d, the book says %d", m.seed, m.round, n, r, got[Reason(r)])
		}
	}
	if got[opaque] > 0 {
		m.t.Errorf("case %d: series are in quarantine for no known words", m.seed)
	}
}

func (m *model) run() {
	for m.round = range 400 {
		m.step()
		m.check()
		if m.t.Failed() {
			return
		}
		if left := m.limited(); m.round >= m.raised && left > 0 {
			m.healedLate = m.round - m.raised + 1
		}
		m.now += m.every
	}
	for _, n := range m.b.Letters(m.now, true) {
		m.letters += n
	}
	if m.letters != m.dropped {
		m.t.Errorf("case %d: letters stand for %d samples, %d were dropped", m.seed, m.letters, m.dropped)
	}
	if most := int(numReasons) * (int(m.now/ProbeEvery) + 1); m.probes > most {
		m.t.Errorf("case %d: %d probes in %v", m.seed, m.probes, m.now)
	}
}

// limited returns how many series are in quarantine only because the limit was reached.
func (m *model) limited() (n int) {
	for i := range m.series {
		if x := &m.series[i]; x.mark != 0 && x.mark.Reason() == limit && x.bad == numReasons {
			n++
		}
	}
	return n
}

// TestModel runs the quarantine against random receivers: a tenant's limit of series that is raised later, refused labels and types,
// some of them corrected later, and refusals for unknown reasons. It prints how many good samples the quarantine costs.
func TestModel(t *testing.T) {
	from, cases := uint64(1), *modelCases
	if *modelSeed > 0 {
		from, cases = *modelSeed, 1
	}
	var samples, healed, swallowed, dropped, trials, probes, late, latest int
	var minutes float64
	for seed := from; seed < from+uint64(cases); seed++ {
		m := newModel(t, seed)
		m.run()
		if t.Failed() {
			return
		}
		samples, healed, swallowed = samples+m.samples, healed+m.healed, swallowed+m.swallowed
		dropped, trials, probes, minutes = dropped+m.dropped, trials+m.trials, probes+m.probes, minutes+m.now.Minutes()
		if m.healedLate > 0 {
			late++
			latest = max(latest, int(time.Duration(m.healedLate)*m.every/time.Second))
		}
	}
	percent := func(n int) float64 { return 100 * float64(n) / float64(samples) }
	t.Logf("%d samples; dropped in quarantine %.2f %%; of all, good ones: of healed series until their probe's turn %.3f %%, of others that were refused together with them %.4f %%",
		samples, percent(dropped), percent(healed), percent(swallowed))
	t.Logf("%.2f probes and %.2f requests of trials a minute; after the limit was raised in %d cases, the last series came back within %d s", float64(probes)/minutes, float64(trials)/minutes, late, latest)
}
