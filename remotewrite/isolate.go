package remotewrite

import (
	"math/bits"
	"slices"
	"strings"
	"unicode"
)

// isolateBudget is how many requests taking a refused batch apart may cost, the empty
// writes that confirm each bad sample included; a few more at the beginning and the end
// show that the way to the receiver is good. See late.go for what is not counted in it.
const isolateBudget = 60

// receiver says what a target does with the good part of a request that it refuses.
type receiver uint8

const (
	unknownReceiver receiver = iota
	rollsBack                // stores nothing of it (Prometheus)
	keepsGood                // stores the good part (Mimir, Cortex, Thanos)
)

// isolation plans how a refused batch is taken apart. It is pure: the driver asks next
// for samples to send in one request, and says what came of it.
//
// The batch is cut to rounds of one sample per series, oldest first, since resending
// what was stored is safe only for a series' newest sample. A refused round is bisected.
// A single sample that is refused is bad: whatever it is, this receiver does not take it.
//
// A batch with several rounds at a receiver that keeps the good part looks different:
// of each series all but the newest sample are refused, as they are older than what is
// stored. So before a first round is bisected, a few of its samples that have successors
// are sent alone; if two are refused and one of the series, followed to its newest good
// sample, is taken there and not before, then the receiver had kept the good part.
type isolation struct {
	kind   receiver
	budget int  // requests left
	known  bool // that all samples together are refused: they were a batch of their own
	// doubt: a refusal may be the target's trouble. What was refused alone before anything
	// was taken is refused again, or it is not bad.
	doubt bool

	rounds [][]int // the samples, as indices, that are still to do
	then   []int   // the following sample of the same series, -1 for none
	prev   []int   // the one before, -1 for none
	todo   []piece // of the present round, a stack
	sent   piece   // what next returned last

	done  []bool         // by index: needs nothing more
	took  []bool         // by index: was taken
	words map[int]string // of the refusals of single samples
	lies  map[int]bool   // refused, and stored all the same
	// tooOld: one was refused alone for its age. What is refused so need not be stored, and looks
	// as what was: of each series the older samples are refused, and the newest is taken.
	tooOld bool
	passed int   // how many were
	fails  int   // requests that were refused
	bad    []int // refused alone, in the order of refusal
	older  []int // refused alone, but may be older than what is stored

	probing bool // finding out the receiver's kind
	probes  []int
	yes, no int   // how many of them were taken, and refused
	walks   []int // those that were refused: their series may be followed
	walk    int   // the sample to follow the series from, -1 if not walking
	reached bool  // the one before it was taken

	resting bool // next returned all that is left, at once
	restBad int  // how many bad samples were known when that was tried last
}

// piece is a part of a round.
type piece struct {
	at  []int
	bad bool // known to be refused: not sent before it is split
	// left: the sibling is on top of the stack, and one of both is bad.
	left bool
	put  bool // off once, see later
}

// newIsolation plans for samples whose rounds are given as in the result of rounds. known
// says that they were refused together, and not with others.
func newIsolation(kind receiver, hashes []uint64, spans []span, known bool, budget int) *isolation {
	p := &isolation{kind: kind, budget: budget, known: known, walk: -1,
		then: make([]int, len(hashes)), prev: make([]int, len(hashes)),
		done: make([]bool, len(hashes)), took: make([]bool, len(hashes)), words: map[int]string{}, lies: map[int]bool{}}
	last := make(map[uint64]int)
	for i, h := range hashes {
		p.then[i], p.prev[i] = -1, -1
		if j, ok := last[h]; ok {
			p.then[j], p.prev[i] = i, j
		}
		last[h] = i
	}
	for _, s := range spans {
		round := make([]int, 0, s.len())
		for i := s.lo; i < s.hi; i++ {
			round = append(round, i)
		}
		p.rounds = append(p.rounds, round)
	}
	if known && len(spans) == 1 {
		// The batch was this round: it needs not be refused twice.
		p.begin(true)
	}
	if kind == keepsGood {
		p.conclude()
	}
	return p
}

// begin puts the next round on the stack. What follows a sample that was refused alone is
// likely to be refused, too: it is not sent together with others.
func (p *isolation) begin(bad bool) {
	var others []int
	for _, i := range p.rounds[0] {
		if p.follows(i) {
			p.todo = append(p.todo, piece{at: []int{i}})
		} else {
			others = append(others, i)
		}
	}
	if len(others) > 0 {
		p.todo = append(p.todo, piece{at: others, bad: bad})
	}
	p.rounds = p.rounds[1:]
}

// follows reports whether the sample before i in its series was refused alone. Mostly all of
// such a series are refused: the receiver has something newer of it, from another sender or
// from a time when a clock was ahead.
func (p *isolation) follows(i int) bool {
	return p.kind != keepsGood && p.prev[i] >= 0 && p.isBad(p.prev[i])
}

// lasting reports whether a series whose next sample comes in the next round was refused
// twice in a row: then all that is left will be refused at once, too.
func (p *isolation) lasting() bool {
	return slices.ContainsFunc(p.rounds[0], func(i int) bool { return p.follows(i) && p.follows(p.prev[i]) })
}

// spent takes requests that the driver sent of its own off the budget.
func (p *isolation) spent(n int) { p.budget -= n }

// later puts what next returned last behind all others of its round. It reports whether
// there are any, for once: false the second time.
func (p *isolation) later() bool {
	if len(p.todo) == 0 || p.sent.put {
		return false
	}
	p.fails++
	p.todo = slices.Insert(p.todo, 0, piece{at: p.sent.at, put: true})
	return true
}

// giveUp makes next return nothing more: what is not done stays so.
func (p *isolation) giveUp() { p.todo, p.rounds = nil, nil }

// leaveRest takes all that next returned, when it returned all that is left, out of the plan:
// it was refused after an answer to it was lost. If it was stored by then, all but the newest
// of each series are refused for that.
func (p *isolation) leaveRest() {
	for _, i := range p.sent.at {
		p.done[i] = true
	}
	p.resting, p.rounds = false, nil
}

// next returns the samples to send next, in order, or false at the end.
func (p *isolation) next() ([]int, bool) {
	for p.budget > 0 {
		switch {
		case p.probing:
			if p.sent, p.probing = p.probe(); p.probing {
				p.budget--
				return p.sent.at, true
			}
			continue
		case len(p.todo) == 0 && len(p.rounds) == 0:
			return nil, false
		case len(p.todo) == 0 && len(p.rounds) > 1 && len(p.bad) > p.restBad && p.kind != keepsGood && !p.lasting():
			// Something bad was found: perhaps that was all.
			p.resting, p.restBad = true, len(p.bad)
			if at := p.open(flatten(p.rounds)); len(at) > 0 {
				p.sent = piece{at: at}
				p.budget--
				return at, true
			}
			continue
		case len(p.todo) == 0:
			p.begin(false)
			continue
		}
		top := p.todo[len(p.todo)-1]
		p.todo = p.todo[:len(p.todo)-1]
		top.at = p.open(top.at)
		if len(top.at) == 0 {
			continue
		}
		if top.bad && len(top.at) > 1 {
			half := len(top.at) / 2
			p.todo = append(p.todo, piece{at: top.at[half:]}, piece{at: top.at[:half], left: true})
			continue
		}
		p.sent = top
		p.budget--
		return top.at, true
	}
	return nil, false
}

// open returns those of at that are not done.
func (p *isolation) open(at []int) []int {
	var open []int
	for _, i := range at {
		if !p.done[i] {
			open = append(open, i)
		}
	}
	return open
}

// accepted says that the receiver took what next returned.
func (p *isolation) accepted() {
	doubted := p.doubted()
	p.passed += len(p.sent.at)
	for _, i := range p.sent.at {
		p.done[i], p.took[i] = true, true
	}
	defer func() { p.todo = append(p.todo, doubted...) }()
	switch {
	case p.probing:
		p.probed(true)
	case p.resting:
		p.resting, p.rounds = false, nil
	case p.sent.left && len(p.todo) > 0:
		p.todo[len(p.todo)-1].bad = true
	}
}

// found says that what next returned, a single sample, was refused as it is stored. It says
// nothing about the other half of what they were in.
func (p *isolation) found() {
	p.sent.left = false
	p.accepted()
}

// doubted returns the samples to ask for again, as something is about to be taken for the
// first time.
func (p *isolation) doubted() (again []piece) {
	if !p.doubt || p.passed > 0 {
		return nil
	}
	for _, i := range p.bad {
		p.done[i] = false
		again = append(again, piece{at: []int{i}})
	}
	p.bad = nil
	return again
}

// tookAlone says which of the samples that next returned got their outcome otherwise: one
// was taken when it was sent as a test. Those that are left, which it returns, are refused
// next.
func (p *isolation) tookAlone(settled func(i int) bool) []int {
	p.sent.at = slices.DeleteFunc(slices.Clone(p.sent.at), func(i int) bool {
		if !settled(i) {
			return false
		}
		p.todo = append(p.todo, p.doubted()...)
		p.done[i], p.took[i] = true, true
		p.passed++
		return true
	})
	return p.sent.at
}

// refused says that the receiver refused what next returned, with these words; late, that they
// are its database's, about the order or the age of samples; tooOld, about the age.
func (p *isolation) refused(words string, late, tooOld bool) {
	p.fails++
	if i := p.sent.at[0]; len(p.sent.at) == 1 {
		p.words[i] = withoutDigits(words)
		p.tooOld = p.tooOld || tooOld
	}
	switch {
	case p.probing && late:
		p.probed(false)
	case p.probing:
		p.probedBad()
	case p.resting:
		p.resting = false
	case len(p.sent.at) == 1:
		i := p.sent.at[0]
		if n := p.then[i]; p.kind == keepsGood && n >= 0 && p.isBad(n) && p.words[n] != p.words[i] {
			// It is late: what was refused for another reason is stored.
			p.lies[n] = true
			p.refusedOlder(i)
			return
		}
		p.done[i] = true
		p.bad = append(p.bad, i)
		if j := p.prev[i]; p.kind == keepsGood && j >= 0 && !p.took[j] {
			// Not stored, so the one before is the newest that may be.
			p.done[j] = false
			p.older = slices.DeleteFunc(p.older, func(o int) bool { return o == j })
			p.todo = append(p.todo, piece{at: []int{j}})
		}
	case p.kind == unknownReceiver && len(p.rounds) > 0 && p.startProbing():
		p.todo = append(p.todo, piece{at: p.sent.at, bad: true})
	default:
		p.todo = append(p.todo, piece{at: p.sent.at, bad: true})
	}
}

// result sums up: bad samples were refused alone; stored ones are at the receiver since
// the first refusal; of the unknown nothing more can be found out within the budget. Of the
// suspects, at least one is bad, and the others are stored.
func (p *isolation) result() (bad, stored, unknown, suspects []int) {
	for i := range p.done {
		if !p.done[i] {
			unknown = append(unknown, i)
		}
	}
	switch {
	case p.kind != keepsGood:
		return append(p.bad, p.older...), nil, unknown, nil
	case p.tooOld:
		return p.bad, nil, append(unknown, p.older...), nil
	}
	if len(p.bad) == 0 && len(unknown) == 0 {
		return nil, nil, nil, p.older // all of them are late now, the bad one as well
	}
	for _, i := range p.older {
		if p.before(i) {
			stored = append(stored, i)
		} else {
			unknown = append(unknown, i)
		}
	}
	return p.bad, stored, unknown, nil
}

// before reports whether a later sample of the series is stored: then this one was not
// refused for what it is, but for being older.
func (p *isolation) before(i int) bool {
	for i = p.then[i]; i >= 0; i = p.then[i] {
		if p.took[i] || p.lies[i] {
			return true
		}
	}
	return false
}

// hopeless reports whether so many parts were refused and none taken that the batch is
// not the reason.
func (p *isolation) hopeless() bool {
	return p.passed == 0 && p.fails > 2*bits.Len(uint(len(p.done)))+4
}

// isBad reports whether a sample was refused alone, for what it is.
func (p *isolation) isBad(i int) bool { return slices.Contains(p.bad, i) }

// withoutDigits makes equal what differs by times and values only.
func withoutDigits(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, text)
}

func flatten(rounds [][]int) []int {
	var all []int
	for _, r := range rounds {
		all = append(all, r...)
	}
	return all
}
