package split

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
)

var (
	modelSeed  = flag.Uint64("model.seed", 0, "replay this case of TestModel only")
	modelFrom  = flag.Uint64("model.from", 1, "the first case of TestModel")
	modelCases = flag.Int("model.cases", cases(), "how many cases TestModel runs; HWSAGENT_SPLIT_CASES in the environment sets it, too")
)

// pinned are cases that TestModel always runs.
var pinned = []uint64{
	88296,   // a killed process leaves only samples that are late for another sender's; good samples of the next round are not stored
	1003964, // samples of known series overtake several of a new one, and the process is killed between them
	1022803, // a sample that contradicts another sender's is taken as a test of a held target
	1585140, // a twin and a bad sample are refused together, and the target is held before the bad one is given up
}

func cases() int {
	if n, err := strconv.Atoi(os.Getenv("HWSAGENT_SPLIT_CASES")); err == nil {
		return n
	}
	return 5000
}

// logged is a sample of the model's log.
type logged struct {
	series uint64
	t      int64
	bad    bool // refused whatever else
	late   bool // the receiver has something newer of the series, from another sender
	poison bool // the receiver fails at it
	twin   bool // the receiver has another value at its time, from another sender
}

// receiver is a random receiver of the model.
type receiver struct {
	keeps, anyOrder, mute, known bool
	all                          bool // refuses everything from request ill to request well
	ill, well                    int
	limit                        int // samples in a request; 0: no limit
	backends                     bool
	percent                      int   // of requests that are refused at random
	oldest                       int64 // what is older is too old
	tells                        bool  // how much it wrote of a request that it refuses

	rnd    *rand.Rand
	n      int
	newest map[uint64]int64
	has    map[int]bool
	twins  map[int]bool // samples that contradict what it has

	refused []int        // of the last request
	covered map[int]bool // twins that were refused beside another sample: the answer was the same as if they had been taken
}

func (r *receiver) name() string {
	s := ""
	add := func(is bool, name string) {
		if is {
			s += " " + name
		}
	}
	add(r.keeps, "keeps the good part")
	add(!r.keeps, "rolls back")
	add(r.anyOrder, "any order")
	add(r.mute, "mute")
	add(r.all, "refuses all for a time")
	add(r.limit > 0, "limit")
	add(r.backends, "one of two refuses")
	add(r.percent > 0, "refuses at random")
	add(r.oldest > 0, "window")
	add(len(r.twins) > 0, "twins")
	add(r.tells, "tells")
	return s[1:]
}

// answer returns the receiver's answer to a request.
func (r *receiver) answer(log []logged, at []int) Kind {
	r.n++
	r.refused = nil
	switch {
	case r.all && r.n >= r.ill && r.n < r.well:
		return Opaque
	case r.backends && r.n >= r.ill && r.n < r.well && r.rnd.IntN(2) == 0:
		return Opaque
	case r.percent > 0 && r.rnd.IntN(100) < r.percent:
		return Opaque
	case r.limit > 0 && len(at) > r.limit:
		return TooLarge
	}
	worst := Took
	newest, has := map[uint64]int64{}, []int{}
	for _, i := range at {
		s := log[i]
		have, ok := newest[s.series]
		if !ok {
			have, ok = r.newest[s.series]
		}
		k := Took
		switch {
		case s.poison:
			k = Failed
		case s.bad && r.known:
			k = Bad
		case s.bad:
			k = Opaque
		case s.t < r.oldest:
			k = TooOld
		case s.twin && !r.has[i] && r.newest[s.series] == s.t:
			k = Duplicate
		case s.twin && r.anyOrder: // it is dropped in silence: something newer of the series is stored
			continue
		case r.anyOrder:
		case s.late, ok && s.t < have:
			k = Late
		case r.has[i] && r.newest[s.series] != s.t:
			k = Late
		}
		if k == Took {
			newest[s.series] = max(have, s.t)
			if !ok {
				newest[s.series] = s.t
			}
			has = append(has, i)
			continue
		}
		r.refused = append(r.refused, i)
		order := []Kind{Took, Duplicate, Late, TooOld, Bad, Opaque, Failed}
		if slices.Index(order, k) > slices.Index(order, worst) {
			worst = k
		}
	}
	if worst != Failed && len(r.refused) > 1 {
		for _, i := range r.refused {
			r.covered[i] = r.covered[i] || log[i].twin
		}
	}
	if worst == Took || r.keeps && worst != Failed {
		for s, t := range newest {
			r.newest[s] = t
		}
		for _, i := range has {
			r.has[i] = true
		}
	}
	if worst != Took && worst != Failed && r.mute {
		return Opaque
	}
	return worst
}

// run is one case of the model.
type run struct {
	t    *testing.T
	seed uint64
	rnd  *rand.Rand
	log  []logged
	to   *receiver

	outcome  []Outcome
	good     int // the last sample that was taken, -1: none
	requests int
	kind     Receiver
	crashes  []int // before which requests
	lost     bool  // answers may be lost
	outage   outage
	sentUpTo int
	turns    int
	named    map[int][]int // by the number of the request: the samples that the refusal named
	known    *known        // nil: nothing is known of any series
	tests    bool          // samples are taken as tests of a held target
	ages     bool          // samples become too old to be sent
	age      int64         // older ones are
	unsure   map[int]bool  // samples whose first answer may have been lost, or forgotten when the target was held
}

// outage is a range of requests without an answer; percent of them arrive.
type outage struct{ from, to, percent int }

// known is a process's knowledge about the series.
type known struct {
	taken   map[uint64]int64 // the newest that was taken
	refused map[uint64]int   // how many were refused alone, and none was taken
}

func newKnown() *known { return &known{map[uint64]int64{}, map[uint64]int{}} }

// note records a sample's outcome.
func (k *known) note(s logged, o Outcome) {
	switch _, taken := k.taken[s.series]; {
	case o == Delivered || o == Resent:
		k.taken[s.series] = max(k.taken[s.series], s.t)
		delete(k.refused, s.series)
	case o == Rejected && !taken:
		k.refused[s.series]++
	}
}

// standings returns the standings of samples in log order, as the driver derives them.
func (k *known) standings(log []logged, samples []int) []Standing {
	many, before := map[uint64]int{}, map[uint64]int64{}
	for _, i := range samples {
		many[log[i].series]++
	}
	var is []Standing
	for _, i := range samples {
		s := log[i]
		has, taken := k.taken[s.series]
		x := Fresh
		switch n := k.refused[s.series]; {
		case !taken && n > 0 && (n >= RefusalsThatSpeak || many[s.series] == 1):
			x = Refused
		case taken && s.t <= max(has, before[s.series]):
			x = Stale
		case !taken:
			x = Unproven
		}
		before[s.series] = max(before[s.series], s.t)
		is = append(is, x)
	}
	return is
}

// crashed ends a process of the model.
type crashed struct{}

func (r *run) send(at []int) Kind {
	if len(r.crashes) > 0 && r.requests >= r.crashes[0] {
		r.crashes = r.crashes[1:]
		if r.rnd.IntN(2) == 0 {
			r.to.answer(r.log, at) // it got there
		}
		panic(crashed{})
	}
	r.requests++
	k := r.to.answer(r.log, at)
	r.trace("  %v -> %d", at, k)
	return k
}

// trace prints the events of a replayed case.
func (r *run) trace(format string, args ...any) {
	if *modelSeed != 0 {
		r.t.Logf(format, args...)
	}
}

// attempt sends a request like the driver: it retries failures, and an answer may be lost.
func (r *run) attempt(at []int, once bool) Reply {
	doubt := false
	for n := 0; ; n++ {
		if r.outage.from <= r.requests && r.requests < r.outage.to {
			doubt = true
			for _, i := range at {
				r.unsure[i] = true
			}
			if r.rnd.IntN(100) < r.outage.percent {
				r.send(at)
				r.trace("    the answer is lost")
			} else {
				r.requests++
				r.trace("  %v is lost", at)
			}
			continue
		}
		k := r.send(at)
		if r.lost && r.rnd.IntN(20) == 0 && n < 5 {
			doubt = true
			for _, i := range at {
				r.unsure[i] = true
			}
			continue
		}
		if k == Failed && !once && n < 3 {
			continue
		}
		if k == Took {
			r.good = at[len(at)-1]
		}
		reply := Reply{Kind: k, Doubt: doubt, Receiver: r.kind, Ref: r.requests}
		if n := len(r.to.refused); r.to.tells && r.to.keeps && k != Took && 0 < n && n < len(at) {
			r.kind, reply.Receiver, reply.Unwritten = KeepsGood, KeepsGood, n
		}
		if !r.to.mute {
			r.named[reply.Ref] = slices.Clone(r.to.refused)
		}
		return reply
	}
}

// split drives a machine. It returns the samples left because the target is held, and whether they may be stored.
func (r *run) split(samples []int, sent bool, first *Reply, limit int) (left []int, doubt bool) {
	anyOrder := r.to.anyOrder && r.rnd.IntN(2) == 0
	is := make([]Standing, len(samples))
	if r.known != nil {
		is = r.known.standings(r.log, samples)
	}
	var in []Sample
	for n, i := range samples {
		s := r.log[i]
		x := Sample{Series: s.series, T: s.t, Standing: is[n], Aged: true}
		switch {
		case x.Standing == Refused:
			x.Refusals = uint8(min(r.known.refused[s.series], RefusalsThatSpeak))
		case anyOrder:
			x.Standing = Fresh
		}
		if sent && x.Standing != Refused {
			r.unsure[i] = true
			x.Sent, x.Partition = true, uint16(s.series%(1+r.seed%4))
		}
		in = append(in, x)
	}
	r.trace("log %v", r.log)
	r.trace("split %v sent=%t receiver %d standings %v", samples, sent, r.kind, is)
	m := New(Config{Receiver: r.kind, Limit: limit, Turns: r.turns, AnyOrder: anyOrder, Seed: r.seed}, in)
	if first != nil {
		m.Refused(*first)
	}
	before := r.requests
	for q, ok := m.Next(); ok; q, ok = m.Next() {
		if r.requests-before > 200+20*len(samples) {
			r.t.Fatalf("seed %d: %d requests for %d samples", r.seed, r.requests-before, len(samples))
		}
		if q.Control {
			k := None
			if r.good >= 0 {
				k = r.send([]int{r.good})
			}
			m.Tell(Reply{Kind: k})
			continue
		}
		if !slices.IsSorted(q.Samples) {
			r.t.Fatalf("seed %d: request %v is not in the log's order", r.seed, q.Samples)
		}
		at, reply := r.before(m, q, samples), Reply{Kind: Took, Receiver: r.kind}
		if len(at) > 0 {
			reply = r.attempt(at, q.Once)
		}
		if reply.Kind == Took && !q.Withhold {
			r.settle(Delivered, at...)
		}
		m.Tell(reply)
		r.verdicts(m, samples)
	}
	r.verdicts(m, samples)
	r.kind = m.Receiver()
	for _, j := range m.Open() {
		left = append(left, samples[j])
	}
	for _, i := range samples {
		if r.outcome[i] == none && !slices.Contains(left, i) {
			r.t.Fatalf("seed %d: sample %d is done and has no outcome", r.seed, i)
		}
		if len(left) > 0 {
			r.unsure[i] = true // the target is held
		}
	}
	return left, m.Doubt()
}

// before lets some samples of a request become too old, or be accepted as tests of a held target, before it is sent. It returns the others.
func (r *run) before(m *Machine, q Request, samples []int) (at []int) {
	if r.ages && r.rnd.IntN(20) == 0 {
		r.age++
	}
	var taken, dropped []int
	for _, j := range q.Samples {
		switch i := samples[j]; {
		case r.log[i].t < r.age:
			r.settle(aged, i)
			dropped = append(dropped, j)
		case len(taken) == 0 && r.tests && r.rnd.IntN(10) == 0 && !slices.ContainsFunc(at, func(k int) bool { return r.log[k].series == r.log[i].series }) && r.attempt([]int{i}, true).Kind == Took:
			if !q.Withhold {
				r.settle(Delivered, i)
			}
			taken = append(taken, j)
		default:
			at = append(at, i)
		}
	}
	if len(taken)+len(dropped) > 0 {
		r.trace("  tests took %v, too old are %v", taken, dropped)
		m.Gone(taken, dropped)
	}
	return at
}

// aged is the outcome of a sample that became too old to send.
const aged Outcome = 99

// verdicts applies the outcomes that a machine has decided. If only the number of missing samples is known,
// it chooses those that the refusal names.
func (r *run) verdicts(m *Machine, samples []int) {
	for _, v := range m.Verdicts() {
		var at []int
		for _, j := range v.Samples {
			at = append(at, samples[j])
		}
		if v.Bad > 0 {
			named := r.named[v.Ref]
			slices.SortStableFunc(at, func(a, b int) int {
				return slices.Index([]bool{true, false}, slices.Contains(named, a)) - slices.Index([]bool{true, false}, slices.Contains(named, b))
			})
			r.settle(Resent, at[v.Bad:]...)
			at = at[:v.Bad]
		}
		r.settle(v.Outcome, at...)
	}
}

func (r *run) settle(o Outcome, at ...int) {
	for _, i := range at {
		if r.outcome[i] != none {
			r.t.Fatalf("seed %d: sample %d has outcome %d, and gets %d", r.seed, i, r.outcome[i], o)
		}
		r.outcome[i] = o
		if r.known != nil {
			r.known.note(r.log[i], o)
		}
		r.trace("    %d: outcome %d", i, o)
	}
}

// process delivers the samples without an outcome. It returns false if it was killed.
func (r *run) process(limit int) (ended bool) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(crashed); !ok {
				panic(p)
			}
		}
	}()
	var unsure, fresh []int
	if r.known != nil {
		r.known = newKnown()
	}
	for i := range r.log {
		switch {
		case r.outcome[i] != none:
		case i < r.sentUpTo:
			unsure = append(unsure, i)
		default:
			fresh = append(fresh, i)
		}
	}
	for n := 0; len(unsure) > 0 && n < 30; n++ {
		unsure, _ = r.split(unsure, true, nil, limit)
	}
	if len(unsure) > 0 {
		return true // held for ever
	}
	for len(fresh) > 0 {
		batch := fresh[:min(limit, len(fresh))]
		fresh = fresh[len(batch):]
		r.sentUpTo = max(r.sentUpTo, batch[len(batch)-1]+1)
		sent := false
		for n := 0; len(batch) > 0; n++ {
			if n == 30 {
				return true
			}
			if sent {
				batch, sent = r.split(batch, true, nil, limit)
				continue
			}
			reply := r.attempt(batch, false)
			if reply.Kind == Took {
				r.settle(Delivered, batch...)
				break
			}
			batch, sent = r.split(batch, false, &reply, limit)
		}
	}
	return true
}

// tally is the summary printed at the end.
type tally struct{ samples, resent, resentBad, deliveredBad, unconfirmed, unconfirmedGood, rejectedStored, rejectedGood, requests, cases int }

// TestModel runs random samples against random receivers, with crashes and lost answers. In all cases each sample has one
// outcome or is held, delivered ones are stored, no good sample counts as rejected, or as resent without being stored, and no sample is lost at a receiver that
// refuses everything for a time.
func TestModel(t *testing.T) {
	tallies := map[string]*tally{}
	if *modelSeed != 0 {
		model(t, *modelSeed, tallies)
		return
	}
	for _, seed := range pinned {
		model(t, seed, tallies)
	}
	for i := range *modelCases {
		model(t, *modelFrom+uint64(i), tallies)
		if t.Failed() {
			return
		}
	}
	var names []string
	for name := range tallies {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		x := tallies[name]
		t.Logf("%5d cases, %7d samples, %5.1f requests a case, %6d resent (%d of them bad), %d delivered and not stored, %5d unconfirmed (%d of them good), %d rejected and stored, %d good ones rejected: %s",
			x.cases, x.samples, float64(x.requests)/float64(x.cases), x.resent, x.resentBad, x.deliveredBad, x.unconfirmed, x.unconfirmedGood, x.rejectedStored, x.rejectedGood, name)
		if x.rejectedGood > 2+x.samples/5_000 {
			t.Errorf("%d good samples were rejected: %s", x.rejectedGood, name)
		}
	}
}

func model(t *testing.T, seed uint64, tallies map[string]*tally) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	to := &receiver{rnd: rnd, newest: map[uint64]int64{}, has: map[int]bool{}, covered: map[int]bool{}, ill: 1 + rnd.IntN(20)}
	to.well = to.ill + rnd.IntN(200)
	to.keeps, to.anyOrder, to.known = rnd.IntN(3) == 0, rnd.IntN(4) == 0, rnd.IntN(2) == 0
	switch rnd.IntN(10) {
	case 0:
		to.mute = true
	case 1:
		to.all = true
	case 2:
		to.backends = true
	case 3:
		to.percent = 1 + rnd.IntN(30)
	case 4:
		to.limit = 1 + rnd.IntN(20)
	case 5:
		to.oldest = int64(rnd.IntN(6))
	}
	r := &run{t: t, seed: seed, rnd: rnd, to: to, good: -1, turns: FullTurns}
	series, rounds, many := 1+rnd.IntN(60), 1+rnd.IntN(6), rnd.IntN(8) == 0
	bad, late, poison := map[uint64]bool{}, map[uint64]bool{}, rnd.IntN(12) == 0
	for s := range uint64(series) {
		bad[s] = many && rnd.IntN(4) == 0
		late[s] = rnd.IntN(4) == 0 && rnd.IntN(30) == 0
	}
	single := rnd.IntN(3) * rnd.IntN(3)
	for round := range rounds {
		for s := range uint64(series) {
			if rnd.IntN(10) == 0 {
				continue
			}
			l := logged{series: s, t: int64(round + 1), bad: bad[s], late: late[s]}
			l.bad = l.bad || single > 0 && rnd.IntN(series*rounds) < single
			l.poison = poison && !l.bad && rnd.IntN(series*rounds) == 0
			r.log = append(r.log, l)
		}
	}
	r.outcome = make([]Outcome, len(r.log))
	if rnd.IntN(4) > 0 { // a sample of another series was taken before
		r.log = append(r.log, logged{series: 1 << 20, t: 1 << 20})
		r.outcome = append(r.outcome, Delivered)
		r.good = len(r.log) - 1
		to.newest[1<<20], to.has[r.good] = 1<<20, true
	}
	for range rnd.IntN(3) {
		r.crashes = append(r.crashes, rnd.IntN(60))
	}
	slices.Sort(r.crashes)
	r.lost = rnd.IntN(4) == 0
	limit := 5 + rnd.IntN(100)
	r.beside(rand.New(rand.NewPCG(seed, 3)), series, rounds)
	r.plant(rand.New(rand.NewPCG(seed, 2)))
	r.knows(rand.New(rand.NewPCG(seed, 4)), series)
	for !r.process(limit) {
	}
	r.check(tallies)
}

// beside lets another sender store newer samples of adjacent series and of some others, and adds an outage, in which none, all
// or some of the requests arrive.
func (r *run) beside(rnd *rand.Rand, series, rounds int) {
	if rnd.IntN(4) > 0 {
		return
	}
	late := map[uint64]bool{}
	for first, n := rnd.IntN(series), 1+rnd.IntN(4); n > 0; n-- {
		late[uint64(first+n)] = true
	}
	for range rnd.IntN(3) {
		late[uint64(rnd.IntN(series))] = true
	}
	from := int64(1 + rnd.IntN(rounds)*rnd.IntN(2))
	for i := range r.outcome {
		s := &r.log[i]
		s.late = s.late || late[s.series] && s.t >= from && s.t < 1<<20
	}
	r.outage.from = rnd.IntN(6) * rnd.IntN(2)
	r.outage.to = r.outage.from + rnd.IntN(4)
	r.outage.percent = []int{0, 0, 50, 100}[rnd.IntN(4)]
}

// knows lets the processes remember the outcomes of each series. Some series are new then: their samples begin later. A held target may be tested
// with samples, and samples become too old.
func (r *run) knows(rnd *rand.Rand, series int) {
	r.tests, r.ages = rnd.IntN(6) == 0, rnd.IntN(12) == 0
	if rnd.IntN(2) == 0 {
		return
	}
	r.known = newKnown()
	begin := map[uint64]int64{}
	for s := range uint64(series) {
		if rnd.IntN(5) == 0 {
			begin[s] = int64(rnd.IntN(5))
		}
	}
	for i := range r.outcome {
		if s := r.log[i]; s.t < begin[s.series] {
			r.outcome[i] = absent
		}
	}
}

// absent is the outcome of a sample that the log does not have.
const absent Outcome = 98

// plant lets the receiver report how much it wrote, and lets another sender store other values at the times of some samples.
func (r *run) plant(rnd *rand.Rand) {
	r.to.tells = rnd.IntN(3) == 0
	r.named, r.unsure, r.to.twins = map[int][]int{}, map[int]bool{}, map[int]bool{}
	lateOnes := slices.ContainsFunc(r.log, func(s logged) bool { return s.late })
	if rnd.IntN(6) > 0 || len(r.outcome) == 0 || lateOnes && !r.to.anyOrder {
		return
	}
	most := 3
	if !r.to.anyOrder { // what comes before it of the series is late there, and several late series pass for stored ones, see search
		most = 1
	}
	for range 1 + rnd.IntN(most) {
		i := rnd.IntN(len(r.outcome))
		s := &r.log[i]
		if _, ok := r.to.newest[s.series]; ok || s.late || s.bad || s.poison {
			continue
		}
		s.twin, r.to.twins[i], r.to.newest[s.series] = true, true, s.t
	}
}

// beforeTwin reports whether the receiver had something newer of a sample's series at first.
func (r *run) beforeTwin(i int) bool {
	return slices.ContainsFunc(r.log, func(s logged) bool { return s.twin && s.series == r.log[i].series && s.t > r.log[i].t })
}

func (r *run) check(tallies map[string]*tally) {
	name := r.to.name()
	if r.to.percent > 0 || r.to.all || r.to.backends || r.to.mute {
		name = fmt.Sprint(name)
	}
	x := tallies[name]
	if x == nil {
		x = &tally{}
		tallies[name] = x
	}
	x.cases++
	x.samples += len(r.log)
	x.requests += r.requests
	for i, s := range r.log {
		good := !s.bad && (!s.late || r.to.anyOrder) && !s.poison && s.t >= r.to.oldest && !s.twin && (r.to.anyOrder || !r.beforeTwin(i))
		stored := r.to.has[i]
		switch o := r.outcome[i]; {
		case o == Delivered && !stored && s.twin && (r.unsure[i] || r.to.keeps && !r.to.tells && (r.to.mute || r.to.covered[i])):
			// Its first answer was lost or forgotten. Or the receiver stored the samples after it, does not report how many samples it refused, nor
			// why, or refused another sample of the request too: it would have answered the same if it had stored this one.
			// Now it drops the sample silently, which is invisible from outside.
			x.deliveredBad++
		case o == Delivered && !stored:
			r.t.Errorf("seed %d: sample %d is delivered and not stored", r.seed, i)
		case o == Resent:
			x.resent++
			if !stored {
				x.resentBad++
			}
			if s.t < r.to.oldest && !stored {
				r.t.Errorf("seed %d: sample %d is too old, and counts as resent (%s)", r.seed, i, name)
			}
			if good && !stored {
				r.t.Errorf("seed %d: sample %d is good, not stored, and counts as resent (%s)", r.seed, i, name)
			}
		case o == Rejected && stored:
			x.rejectedStored++
		case o == Rejected && good && (r.to.percent > 0 || r.to.backends):
			x.rejectedGood++ // contrast is a matter of chance there: see the bound
		case o == Rejected && good:
			r.t.Errorf("seed %d: sample %d %+v is good, and counts as rejected (%s)", r.seed, i, s, name)
		case o == Unconfirmed:
			x.unconfirmed++
			if good {
				x.unconfirmedGood++
			}
		}
	}
}
