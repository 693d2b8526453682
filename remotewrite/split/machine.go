package split

import (
	"math/rand/v2"
	"slices"
)

// state is what is known of a sample so far.
type state uint8

const (
	open     state = iota
	kept           // refused alone; its proof waits until another sample is taken
	late           // refused alone as late; a later sample of its series decides
	inferred       // others that were refused as late speak for it; likewise
	hidden         // it counts as stored, but one of these may be what the request was refused for
	done
)

type sample struct {
	Sample
	state      state
	outcome    Outcome
	prev, next int32 // in its series, -1: none
	ref        int32 // of the answer that refused it last
	alone      bool
	kind       Kind   // of the answer that refused it alone
	pass       uint32 // of the last time that it was looked at, and whether it had to wait then; see blocked
	waits      bool
	clear      bool // nothing before it is open
	exposed    bool // it was in a request that was refused, with a later one of its series: it is stored if the receiver keeps the good part
	again      bool // it was taken again: see withholds
}

// piece is some samples to be sent together.
type piece struct {
	at      []int
	refused bool // they were refused together: they are not sent before they are halved
	kind    Kind // of that refusal
	ref     int
	half    bool // of a refused one
	left    bool // the right half is on top of the stack, and one of both is refused
	once    bool // of samples that the receiver fails at
	chunk   bool // the beginning of a round of samples that may be stored; the piece below is its end
	end     bool // is that
	rest    bool // the budget is spent: if it is refused, it is given up
	after   bool // comes after its witnesses
	alone   bool // a witness
	beyond  bool // behind a sample that shows that they are not stored: none of them speaks for others
}

// Machine decides what becomes of the samples of one request, or of a stretch that may be stored already.
// New makes one. Not safe for concurrent use.
type Machine struct {
	cfg     Config
	rnd     *rand.Rand
	samples []sample

	groups   [][]int // of samples that have not begun yet, each in the log's order
	pass     uint32  // of looking at samples in the log's order
	todo     []piece // a stack
	sent     piece
	withheld bool // of the last request: its samples have no outcome where they are taken
	search   *search
	proof    *proof
	kept     []piece

	suspects map[uint64]bool // series that are late for another reason than that the target has them from here

	requests    int    // but for those of proofs
	proofs      int    // requests of proofs
	found       int    // samples that were delivered, or were late because they are stored
	passed      int    // requests that were taken
	fails       int    // requests that failed once
	free        int    // requests that are not in the budget
	asked       int    // how many of the witnesses were taken
	expect      bool   // the round before is stored
	partition   uint16 // of that
	run         int    // how many samples of a refused piece are sent together at most; 0: any number
	apart       bool   // the partitions go apart: a request with samples of several was refused
	batch       int    // how many samples are given up together at most
	renewals    int    // how often the budget may be renewed
	giving      bool   // the budget is spent
	rejected    int    // samples
	givenUp     int    // samples, those included
	restAgain   int    // how many were rejected when all that is left was sent at once last
	ended       bool
	window      bool // a sample was too old: older ones are not stored
	missing     int  // how many samples, those that are given up included, are not stored, at least: a request of several samples of a series was refused for them
	withhold    bool // some of these may be taken when they are sent again, and not stored
	contradicts bool // the same, whether or not the samples were sent before
	why         int  // the refusal's Ref
	full        bool // a full proof was completed
	random      bool // a refused sample was taken afterwards: the receiver refuses at random
	keeps       int  // samples that were late in a request that was refused, and the ones after them taken
	rounds      int  // rounds that were late in a request that was refused
	rolls       int  // samples that were taken, and the ones after them had been in a refused request

	verdicts []Verdict
}

// New makes a machine for samples in the log's order. Tell with Refused begins with a request that was refused.
func New(cfg Config, samples []Sample) *Machine {
	m := &Machine{cfg: cfg, rnd: rand.New(rand.NewPCG(cfg.Seed, 0)), suspects: make(map[uint64]bool)}
	m.cfg.Limit = max(m.cfg.Limit, 1)
	m.batch = max(m.cfg.Limit, budget)
	m.renewals = renewals + len(samples)/m.batch
	last := make(map[uint64]int32)
	m.samples = make([]sample, 0, len(samples))
	all := make([]int, len(samples))
	for i, s := range samples {
		x := sample{Sample: s, prev: -1, next: -1}
		if j, ok := last[s.Series]; ok {
			x.prev, m.samples[j].next = j, int32(i)
		}
		last[s.Series] = int32(i)
		m.samples = append(m.samples, x)
		all[i] = i
	}
	m.groups = m.group(all)
	return m
}

// group divides samples: what may be stored, by its partitions if they go apart, and behind that the others by their standing.
func (m *Machine) group(at []int) [][]int {
	partitions := map[uint16]int{}
	var sent [][]int
	var fresh stretches
	var behind [2][]int // Refused, Stale
	for _, i := range at {
		switch s := &m.samples[i]; {
		case s.Sent:
			partition := s.Partition
			if !m.apart {
				partition = 0
			}
			n, ok := partitions[partition]
			if !ok {
				n, partitions[partition], sent = len(sent), len(sent), append(sent, nil)
			}
			sent[n] = append(sent[n], i)
		case s.Standing >= Refused:
			behind[s.Standing-Refused] = append(behind[s.Standing-Refused], i)
		default:
			fresh.add(i, &s.Sample)
		}
	}
	return slices.Concat(sent, fresh.groups(), behind[:])
}

// stretches divide Fresh and Unproven samples, in the log's order. In a stretch the Fresh ones go first. None of them overtakes an Unproven sample
// and the next one of its series:
//
//	log        a1 n1 b1 │ a2 n2 b2       a, b: Fresh; n: Unproven
//	requests   a1 b1, n1│ a2 b2, n2
//
// If the agent is killed when a2 is stored and n1 was not sent, the next process finds a1 late, and takes n1, which stands beside it, for stored (see search).
type stretches struct {
	ended [][]int
	last  [Unproven + 1][]int // by standing
	in    map[uint64]bool     // the Unproven series of the last one
	again bool                // one of these has several samples there, and no sample is Fresh
}

func (x *stretches) add(i int, s *Sample) {
	repeats := s.Standing == Unproven && x.in[s.Series]
	if s.Standing == Fresh && x.again || repeats && len(x.last[Fresh]) > 0 {
		*x = stretches{ended: x.groups()}
		repeats = false
	}
	if s.Standing == Unproven {
		if x.in == nil {
			x.in = make(map[uint64]bool)
		}
		x.in[s.Series], x.again = true, x.again || repeats
	}
	x.last[s.Standing] = append(x.last[s.Standing], i)
}

// groups returns the stretches' samples, in the order of sending.
func (x *stretches) groups() [][]int { return append(x.ended, x.last[:]...) }

// Refused says that all samples were refused together, before the first Next.
func (m *Machine) Refused(r Reply) {
	m.learn(r)
	all := make([]int, len(m.samples))
	for i := range all {
		all[i] = i
	}
	m.expose(all, r)
	groups := 0
	for _, g := range m.groups {
		if len(g) > 0 {
			groups++
		}
	}
	if groups > 1 || len(m.unique(all)) < len(all) {
		return
	}
	p := piece{at: all, once: r.Kind == Failed}
	m.groups = nil
	m.sent = p
	m.refused(p, r)
}

// learn takes what is known of the receiver.
func (m *Machine) learn(r Reply) {
	if r.Receiver != Unknown {
		m.cfg.Receiver = r.Receiver
	}
}

// Limit sets how many samples a request may have.
func (m *Machine) Limit(n int) { m.cfg.Limit = max(n, 1) }

// Doubt reports whether samples without an outcome may be stored.
func (m *Machine) Doubt() bool {
	for i := range m.samples {
		if m.samples[i].state != done && m.mayBeStored(i) {
			return true
		}
	}
	return false
}

// Blamed reports whether a sample was refused alone, in no known words.
func (m *Machine) Blamed(i int) bool {
	s := &m.samples[i]
	return s.alone && (s.kind == Opaque || s.kind == TooLarge)
}

// Receiver is what is known of the receiver.
func (m *Machine) Receiver() Receiver { return m.cfg.Receiver }

// ProvedFully reports whether a sample was proven bad in FullTurns turns.
func (m *Machine) ProvedFully() bool { return m.full }

// Random reports whether samples were taken that were refused, for no known reason, before.
func (m *Machine) Random() bool { return m.random }

// Verdicts returns what was decided since it was called last, but for what was delivered by requests that did not withhold.
func (m *Machine) Verdicts() []Verdict {
	v := m.verdicts
	m.verdicts = nil
	return v
}

// Open returns the samples without an outcome, in the log's order.
func (m *Machine) Open() (at []int) {
	for i := range m.samples {
		if m.samples[i].state != done {
			at = append(at, i)
		}
	}
	return at
}

// Next returns the next request, or false at the end.
func (m *Machine) Next() (Request, bool) {
	for !m.ended {
		switch {
		case m.proof != nil:
			m.proofs++
			r := m.proof.next()
			m.withheld = m.withholdsAny(r.Samples)
			r.Withhold = m.withheld
			return r, true
		case m.search != nil:
			if i, ok := m.search.next(m); ok {
				return m.request(piece{at: []int{i}}), true
			}
			m.concluded()
		case !m.giving && m.overBudget():
			m.giveUpRest()
		case len(m.todo) > 0:
			p := m.todo[len(m.todo)-1]
			m.todo = m.todo[:len(m.todo)-1]
			if r, ok := m.take(p); ok {
				return r, true
			}
		case !m.refill():
			m.end()
		}
	}
	m.reveal()
	return Request{}, false
}

// Stop ends the machine before Next does.
func (m *Machine) Stop() {
	m.ended = true
	m.reveal()
}

// Gone says that samples of the last request were not sent with the others: the target took some of them alone, as tests, and some
// were dropped, because they became too old to be sent. Those that it took have their outcome unless the request withholds it.
func (m *Machine) Gone(taken, dropped []int) {
	for _, i := range dropped {
		m.samples[i].state = done
	}
	m.took(taken)
	gone := func(i int) bool { return m.samples[i].state == done }
	m.sent.at = slices.DeleteFunc(slices.Clone(m.sent.at), gone)
	if m.proof != nil {
		m.proof.at = slices.DeleteFunc(slices.Clone(m.proof.at), gone)
	}
}

// Tell says what was answered to the last request.
func (m *Machine) Tell(r Reply) {
	m.learn(r)
	switch p := m.sent; {
	case m.proof != nil:
		m.tellProof(r)
	case r.Kind == Took:
		m.passed++
		m.accepted(p)
	default:
		if m.expose(p.at, r); len(p.at) > 0 {
			m.refused(p, r)
		}
	}
}
