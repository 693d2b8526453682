package split

import (
	"math/rand/v2"
	"slices"
)

// state is the knowledge about a sample so far.
type state uint8

const (
	open     state = iota
	kept           // refused alone; its proof waits until another sample is accepted
	late           // refused alone as late; a later sample of its series decides
	inferred       // taken for stored because other samples were refused as late; a later sample decides
	hidden         // counts as stored, but may be one of those that the request was refused for
	done
)

type sample struct {
	Sample
	state      state
	outcome    Outcome
	prev, next int32 // in its series; -1: none
	ref        int32 // of the last answer that refused it
	alone      bool
	kind       Kind   // of the answer that refused it alone
	pass       uint32 // number of the pass that last looked at it, and whether it had to wait then; see blocked
	waits      bool
	clear      bool // no earlier sample of its series is open
	exposed    bool // refused together with a later sample of its series: it is stored if the receiver keeps the good part
	again      bool // accepted on a second attempt: see withholds
}

// piece is a set of samples to send together.
type piece struct {
	at      []int
	refused bool // the samples were refused together: halve them before sending
	kind    Kind // of that refusal
	ref     int
	half    bool // one half of a refused piece
	left    bool // the right half is on top of the stack, and at least one of the halves is refused
	once    bool // its samples make the receiver fail
	chunk   bool // the beginning of a round of samples that may be stored; the piece below is its end
	end     bool // the end of such a round
	rest    bool // the budget is spent: give it up if it is refused
	after   bool // comes after its witnesses
	alone   bool // a witness
	beyond  bool // behind a sample that proves them not stored: none of them stands for others
	whole   bool // sent undivided by sweep
}

// Machine decides the outcome of the samples of one request, or of a range of the log that may be stored already.
// New makes one. Not safe for concurrent use.
type Machine struct {
	cfg     Config
	rnd     *rand.Rand
	samples []sample

	groups   [][]int // samples not started yet; each group is in log order
	pass     uint32  // number of the current pass over samples in log order
	todo     []piece // a stack
	sent     piece
	withheld bool // of the last request: its samples get no outcome when accepted
	search   *search
	proof    *proof
	kept     []piece
	swept    []piece // refused by sweep, in log order

	suspects map[uint64]bool // series late for another reason than samples that this agent stored

	requests    int    // without those of proofs
	proofs      int    // requests of proofs
	found       int    // samples that were delivered, or late because they are stored
	passed      int    // accepted requests
	fails       int    // failures of pieces that the receiver fails at
	free        int    // requests that do not count against the budget
	asked       int    // number of accepted witnesses
	expect      bool   // the previous round is stored
	partition   uint16 // of the previous round
	run         int    // most samples of a refused piece to send together; 0: any number
	apart       bool   // send each partition by itself: a request with samples of several was refused
	acquainted  bool   // the target is known to have samples of some of the series
	batch       int    // most samples to give up together
	renewals    int    // budget renewals left
	giving      bool   // the budget is spent
	rejected    int    // number of rejected samples
	givenUp     int    // number of samples given up, rejected ones included
	sweepFrom   int    // the next sweep needs so many found samples
	ended       bool
	window      bool // a sample was too old: older ones are not stored
	missing     int  // lower bound of the samples not stored, those given up included: a request with several samples of a series was refused for them
	withhold    bool // some of these may be accepted when sent again, and still not be stored
	contradicts bool // the same, whether or not the samples were sent before
	why         int  // Ref of the refusal behind missing
	proves      bool // a sample was refused for a reason that needs a proof
	full        bool // a full proof was completed
	random      bool // a refused sample was accepted later: the receiver refuses at random
	rounds      int  // rounds found stored although their request was refused
	rolls       int  // accepted samples whose successor in the series was in the same refused request

	verdicts []Verdict
}

// New makes a machine for samples in log order. To begin with a request that was refused, call Refused before Next.
func New(cfg Config, samples []Sample) *Machine {
	m := &Machine{cfg: cfg, rnd: rand.New(rand.NewPCG(cfg.Seed, 0)), suspects: make(map[uint64]bool)}
	m.cfg.Limit = max(m.cfg.Limit, 1)
	m.batch = max(m.cfg.Limit, budget)
	m.renewals = renewals + len(samples)/m.batch
	last := make(map[uint64]int32)
	m.samples = make([]sample, 0, len(samples))
	all := make([]int, len(samples))
	for i, s := range samples {
		m.acquainted = m.acquainted || s.Standing == Fresh || s.Standing == Stale
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

// group divides samples: first those that may be stored, per partition if apart is set, then the others by standing.
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

// stretches divide Fresh and Unproven samples, in log order. In a stretch the Fresh ones go first. No Fresh sample
// overtakes both an Unproven sample and the next one of that sample's series:
//
//	log        a1 n1 b1 │ a2 n2 b2       a, b: Fresh; n: Unproven
//	requests   a1 b1, n1│ a2 b2, n2
//
// Otherwise a2 could be stored before n1 is sent. If the agent were killed then, the next process would find a1 late and
// infer that its neighbour n1 is stored (see search).
type stretches struct {
	ended [][]int
	last  [Unproven + 1][]int // by standing
	in    map[uint64]bool     // Unproven series of the last stretch
	again bool                // one of these series has several samples there, and no sample is Fresh
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

// groups returns the samples of the stretches in sending order.
func (x *stretches) groups() [][]int { return append(x.ended, x.last[:]...) }

// Refused reports to the machine that all samples were refused together. Call it before the first Next.
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

// learn takes over what the answer shows about the receiver.
func (m *Machine) learn(r Reply) {
	if r.Receiver != Unknown {
		m.cfg.Receiver = r.Receiver
	}
}

// Limit sets the most samples of a request.
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

// Blamed reports whether a sample was refused alone, without a known reason.
func (m *Machine) Blamed(i int) bool {
	s := &m.samples[i]
	return s.alone && (s.kind == Opaque || s.kind == TooLarge)
}

// Receiver returns the kind of the receiver, as far as it is known.
func (m *Machine) Receiver() Receiver { return m.cfg.Receiver }

// ProvedFully reports whether a sample was proven bad in FullTurns turns.
func (m *Machine) ProvedFully() bool { return m.full }

// Random reports whether the target accepted samples that it had refused before for no known reason.
func (m *Machine) Random() bool { return m.random }

// Verdicts returns the outcomes decided since its last call, except those of samples delivered by requests that withheld no outcome.
func (m *Machine) Verdicts() []Verdict {
	v := m.verdicts
	m.verdicts = nil
	return v
}

// Open returns the samples without an outcome, in log order.
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
		case !m.giving && m.overBudget(len(m.todo)) && m.sweep():
		case !m.giving && m.overBudget(0):
			m.giveUpRest()
		case len(m.todo) > 0:
			p := m.todo[len(m.todo)-1]
			m.todo = m.todo[:len(m.todo)-1]
			if r, ok := m.take(p); ok {
				return r, true
			}
		case len(m.swept) > 0:
			slices.Reverse(m.swept)
			m.todo, m.swept, m.giving = m.swept, nil, false
		case !m.refill():
			m.end()
		}
	}
	m.reveal()
	return Request{}, false
}

// Stop ends the machine early.
func (m *Machine) Stop() {
	m.ended = true
	m.reveal()
}

// Gone reports samples of the last request that were not sent with the others: the target accepted those in taken alone, as tests, and
// those in dropped became too old to send. A taken sample has its outcome unless the request withholds it.
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

// Tell passes the answer to the last request to the machine.
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
