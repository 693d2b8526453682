package split

import (
	"slices"
	"time"
)

// Kind is what an answer says about the samples of its request.
type Kind uint8

// The kinds of answers.
const (
	Opaque    Kind = iota // refused in words that no database is known to use
	Taken                 // accepted
	Late                  // the database has a newer sample of the series
	Duplicate             // the database has another value at the sample's time
	TooOld                // the sample is outside the database's window
	Bad                   // the database names another fault of the sample or its series
	TooLarge              // 413
	Failed                // a failure that may pass, and may be due to these samples
	None                  // only of a control: no sample is known that the target took
	Denied                // only of a control: the target accepts no requests at present
)

// refusal reports whether the receiver refused the samples, for any reason but the size of the request.
func (k Kind) refusal() bool { return k == Opaque || k >= Late && k <= Bad }

// aboutTime reports whether the refusal depends on the time of a sample, and not on its series.
func (k Kind) aboutTime() bool { return k == Late || k == Duplicate || k == TooOld }

// fromDatabase reports whether the receiver's database has spoken.
func (k Kind) fromDatabase() bool { return k >= Late && k <= Bad }

// Answer is the answer to a step.
type Answer struct {
	Kind    Kind
	Words   string // identifies the reason: answers with equal words have the same cause
	Refusal bool   // of kind Failed: a refusal that counts as a failure
	Lost    bool   // the receiver may have stored the samples all the same
	Date    int64  // the receiver's clock, ms since the epoch; 0: unknown
	Ref     int    // the driver's number of the answer
}

// Sample is a sample of a batch.
type Sample struct {
	Series uint64
	T      int64 // ms since the epoch
	Doubt  bool  // it may be stored already
	New    bool  // its series was first logged after the start, and no sample of it was taken
	Type   uint8 // the type of its value: samples of one type may fail for one reason

	Rejected uint8 // how many samples of its series were rejected in unknown words since one was taken, at most MostRejected
}

// MostRejected is how many samples of a series are rejected in unknown words, and none is taken, before it is muted: the first ones may have
// been refused for their time, or their value.
const MostRejected = 4

// Outcome is the final outcome of a sample.
type Outcome uint8

// The outcomes.
const (
	Delivered   Outcome = iota
	Rejected            // refused
	Old                 // refused as too old
	Unconfirmed         // given up without knowing whether it is stored
)

// Verdict is the outcome of samples. Ref is the answer that it is based on.
type Verdict struct {
	Samples []int
	Outcome Outcome
	Ref     int
	Mute    bool // the series of these samples must leave the batches
}

// Do is the kind of a step.
type Do uint8

// The steps. Done, Hold and Whole end the machine; samples without an outcome are then the driver's again.
const (
	look    Do = iota // internal: the tasks have changed
	over              // internal: the task is finished
	Send              // send the samples in one request
	Control           // send the control
	Wait              // until a time
	Done              // every sample has its outcome
	Hold              // hold the target: nothing shows that the samples are at fault
	Whole             // send the samples as a whole: the target fails at everything, or they were not sent yet
)

// Step is the next action of the driver.
type Step struct {
	Do      Do
	Samples []int     // of Send, in the order of the batch
	How     How       // of Send
	Until   time.Time // of Wait
}

// How is the way in which a request is sent.
type How uint8

// The ways.
const (
	Plain How = iota
	Fresh     // on a new connection
	Bare      // without exemplars and metadata, because these may be at fault
)

// Config describes a batch.
type Config struct {
	Extras bool // its request carried exemplars or metadata
	Drop   bool // on_refusal: drop: refused samples are dropped without proof
}

// state is what has become of a sample.
type state uint8

const (
	open    state = iota
	taken         // delivered
	settled       // another outcome
)

type sample struct {
	Sample
	state state
}

// task is a piece of work with its own requests. The machine has a stack of them, and asks the top one.
type task interface {
	next(m *Machine, now time.Time) Step
	tell(m *Machine, a Answer, now time.Time)
}

// Machine decides the outcome of the samples of one batch. New makes one. Not safe for concurrent use.
type Machine struct {
	facts    *Facts
	cfg      Config
	samples  []sample
	tasks    []task
	waits    map[uint64]*wait // samples that the receiver fails at, by series
	asked    Step             // the last step
	barren   int              // refusals in a row that proved nothing
	proofs   map[string]int   // samples proven bad in unknown words, by words; none since the target was contradictory
	settled  int              // samples with an outcome
	rejected int              // of these, those that were refused
	phase    phase

	inHalves int // size of the smallest part that failed, and whose halves were taken at once; 0: none
	taken    int // size of the largest part that was taken
	end      Do  // look until the machine has ended

	verdicts []Verdict
}

// phase is why the machine sends parts.
type phase uint8

const (
	refusing phase = iota // the receiver refused the batch, or called it too large
	failing               // it failed at the batch
	last                  // barren has reached its limit: each part is sent once more, and refused samples are unconfirmed
)

// barrenLimit is how many refusals in a row may prove nothing.
const barrenLimit = 64

// New makes a machine for a batch in log order. Call Refused, Failing or AskNewest before Next.
func New(f *Facts, cfg Config, samples []Sample) *Machine {
	m := &Machine{facts: f, cfg: cfg, samples: make([]sample, len(samples)), waits: make(map[uint64]*wait), proofs: make(map[string]int)}
	for i, s := range samples {
		m.samples[i].Sample = s
	}
	return m
}

// Refused begins with a batch that was refused, or too large.
func (m *Machine) Refused(a Answer, now time.Time) {
	at := m.all()
	m.doubtRepeated(at, a)
	switch {
	case m.cfg.Drop:
		m.settle(at, Rejected, a, false)
	case a.Kind == TooLarge, len(at) == 1:
		m.refused(at, a, now)
	default:
		m.push(&repeat{at: at})
	}
}

// Failing begins with a batch that has failed three times.
func (m *Machine) Failing(a Answer, now time.Time) {
	m.phase = failing
	at := m.all()
	for _, i := range at {
		m.samples[i].Doubt = m.samples[i].Doubt || a.Lost
	}
	if m.cfg.Extras {
		m.push(&bare{at})
	} else {
		m.failedPart(at, a, now, true)
		return
	}
	m.push(&control{whole: true})
}

// AskNewest begins with a batch that was not sent, because the batch before it was too old.
func (m *Machine) AskNewest() { m.push(&newest{at: m.all(), unsent: true}) }

// all returns all samples.
func (m *Machine) all() []int {
	at := make([]int, len(m.samples))
	for i := range at {
		at[i] = i
	}
	return at
}

func (m *Machine) push(t task) { m.tasks = append(m.tasks, t) }
func (m *Machine) pop()        { m.tasks = m.tasks[:len(m.tasks)-1] }

// Next returns the next step.
func (m *Machine) Next(now time.Time) Step {
	for m.end == look {
		if m.barren >= barrenLimit && m.phase != last {
			m.endSearch()
		}
		if len(m.tasks) == 0 && !m.more(now) {
			m.end = Done
			break
		}
		switch s := m.tasks[len(m.tasks)-1].next(m, now); s.Do {
		case look:
		case over:
			m.pop()
		default:
			m.asked = s
			return s
		}
	}
	return Step{Do: m.end}
}

// more pushes the work that is left when no task is: rounds for what fails, and samples that waited for them.
func (m *Machine) more(now time.Time) bool {
	if len(m.waits) > 0 {
		m.push(newRound(m, now))
		return true
	}
	if at := m.ready(m.all()); len(at) > 0 {
		m.push(&send{at: at})
		return true
	}
	return false
}

// Tell passes the answer to the last step to the machine. A step Wait has no answer.
func (m *Machine) Tell(a Answer, now time.Time) {
	top := m.tasks[len(m.tasks)-1]
	_, isControl := top.(*control)
	_, isAsk := top.(*ask)
	if !isControl && !isAsk && a.Kind.refusal() && !a.Kind.aboutTime() && !m.cfg.Drop && m.facts.Contradictory(now) {
		a.Kind, a.Refusal = Failed, true
		clear(m.proofs)
	}
	if m.asked.Do == Send {
		m.doubtRepeated(m.asked.Samples, a)
		for _, i := range m.asked.Samples {
			m.samples[i].Doubt = m.samples[i].Doubt || a.Lost
		}
	}
	switch {
	case a.Kind == Taken && m.asked.Do == Send:
		m.taken = max(m.taken, len(m.asked.Samples))
		m.settle(m.asked.Samples, Delivered, a, false)
	case a.Kind.refusal() && m.asked.Do == Send:
		m.barren++
	}
	top.tell(m, a, now)
}

// doubtRepeated puts the samples of series with several samples in doubt if their request was refused: a receiver that keeps the good
// part has them, and refuses all but the newest as late.
func (m *Machine) doubtRepeated(at []int, a Answer) {
	if !a.Kind.refusal() {
		return
	}
	n := make(map[uint64]int, len(at))
	for _, i := range at {
		n[m.samples[i].Series]++
	}
	for _, i := range at {
		s := &m.samples[i]
		s.Doubt = s.Doubt || n[s.Series] > 1
	}
}

// ready returns the samples that may be sent: without an outcome, and not behind a waiting sample of their series.
func (m *Machine) ready(at []int) (ready []int) {
	for _, i := range at {
		if s := &m.samples[i]; s.state == open && m.waits[s.Series] == nil {
			ready = append(ready, i)
		}
	}
	return ready
}

// settle gives samples their outcome.
func (m *Machine) settle(at []int, o Outcome, a Answer, mute bool) {
	v := Verdict{Outcome: o, Ref: a.Ref, Mute: mute}
	for _, i := range at {
		s := &m.samples[i]
		if s.state != open {
			continue
		}
		if s.state = settled; o == Delivered {
			s.state = taken
			if s.New {
				m.facts.TookNew()
			}
			if s.Rejected > 0 {
				m.trust(s.Series)
			}
		}
		if w := m.waits[s.Series]; w != nil && w.i == i {
			delete(m.waits, s.Series)
		}
		v.Samples = append(v.Samples, i)
	}
	if len(v.Samples) > 0 {
		m.barren = 0
		m.settled += len(v.Samples)
		if o == Rejected {
			m.rejected += len(v.Samples)
		}
		m.verdicts = append(m.verdicts, v)
	}
}

// trust ends the row of rejected samples of a series, because one was taken.
func (m *Machine) trust(series uint64) {
	for i := range m.samples {
		if s := &m.samples[i]; s.Series == series {
			s.Rejected = 0
		}
	}
}

// settleTime settles samples that were refused for their time. Those that may be stored are unconfirmed.
func (m *Machine) settleTime(at []int, o Outcome, a Answer) {
	var sure, doubted []int
	for _, i := range at {
		if m.samples[i].Doubt {
			doubted = append(doubted, i)
		} else {
			sure = append(sure, i)
		}
	}
	m.settle(sure, o, a, false)
	m.settle(doubted, Unconfirmed, a, false)
}

// Gone says that samples of the last step have an outcome that the driver gave them: they became too old to send, or were taken as tests
// of a held target. Call it before Tell.
func (m *Machine) Gone(at []int) {
	for _, i := range at {
		m.samples[i].state = taken
		delete(m.waits, m.samples[i].Series)
	}
}

// Verdicts returns the outcomes decided since its last call.
func (m *Machine) Verdicts() []Verdict {
	v := m.verdicts
	m.verdicts = nil
	return v
}

// Open returns the samples without an outcome, in log order.
func (m *Machine) Open() (at []int) {
	for i := range m.samples {
		if m.samples[i].state == open {
			at = append(at, i)
		}
	}
	return at
}

// Doubt reports whether a sample may be stored.
func (m *Machine) Doubt(i int) bool { return m.samples[i].Doubt }

// endSearch replaces all tasks: each part that was not sent by itself is sent once more, and then nothing else is tried.
func (m *Machine) endSearch() {
	m.phase = last
	var parts [][]int
	in := make(map[int]bool)
	for _, t := range m.tasks {
		if s, is := t.(*send); is {
			parts = append(parts, s.at)
			for _, i := range s.at {
				in[i] = true
			}
		}
	}
	rest := slices.DeleteFunc(m.ready(m.all()), func(i int) bool { return in[i] })
	m.tasks = nil
	half := len(rest) / 2
	for _, at := range append(parts, rest[half:], rest[:half]) {
		m.push(&send{at: at})
	}
}
