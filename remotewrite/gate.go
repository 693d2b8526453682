package remotewrite

import (
	"sync"
	"time"

	"hwsagent/remotewrite/pace"
)

// gateState says what a target takes at present.
type gateState uint8

const (
	// gateUnproven: nothing is known. One request at a time, until one delivers data.
	gateUnproven gateState = iota
	// gateOpen: the target takes data; up to limit requests at a time.
	gateOpen
	// gatePaused: the last request failed in a way that passes. Nothing is sent until
	// the pause is over, then one request at a time.
	gatePaused
	// gateHeld: the target refuses requests as such. Nothing is sent but tests, one at a
	// time, at the times of the hold schedule or when poked.
	gateHeld
)

// gate is where all shards of a target wait before they send. Failure is a property of
// the target, so pauses, Retry-After and holds are target-wide: ten shards do not knock
// ten times. Safe for concurrent use.
type gate struct {
	rand func() float64

	mu      sync.Mutex
	state   gateState
	turn    uint64        // grows with each change of state; a late answer of an earlier turn changes nothing
	flying  int           // requests under way
	behind  int           // requests of the backlog under way that have no place among these
	waiting int           // requests of what is live that wait
	inTurn  int           // of these, those of the present turn; the others were given up on
	limit   int           // how many may be under way while open; 1 <= limit <= most
	most    int           // what limit grows to
	until   time.Time     // nothing goes before: the end of the pause, or the time of the next test or request
	why     string        // what the target waits for, for people
	since   time.Time     // when data last stopped to go through; zero while it does
	changed chan struct{} // closed and replaced at each change
	backoff pace.Backoff
	holds   pace.Holds

	// byData: the target is held because it refuses samples. An empty write that it takes says
	// nothing about them: it is tested with samples.
	byData bool

	troubles uint64 // how often a request failed as such, ever
	refusals uint64 // of these, how often requests as such were refused
	pokes    uint64 // how often poke was called, ever

	peace time.Time // for so long the receiver asked to be left in peace, by Retry-After

	// restart is within how long, at random, the first failure after a start is tried again; 0 once a request
	// was delivered or has failed. The backoff of a start is for the pauses after that one.
	restart time.Duration

	// emptyPasses: the target accepted an empty write once, so its refusal of one
	// means something.
	emptyPasses bool
	// emptyPassedSince: an empty write passed since data last went through.
	emptyPassedSince bool
	// emptyAnswered: one was answered, in whatever way, since then, or since a batch was
	// taken apart in vain. So what does not answer may be the fault of what is sent.
	emptyAnswered bool
	// answered: of the failures since data last went through, the last was an answer.
	answered bool
}

// pass is the right to send one request. Every pass goes back through one of the
// gate's methods that take it.
type pass struct {
	turn  uint64
	pokes uint64 // of the gate, when the pass was given out
	test  bool   // the target is held: test it, do not send a batch

	// behind: it is for the backlog, and takes nothing from what is live.
	behind bool
}

// newGate makes a gate through which the first request goes at random within splay.
func newGate(minBackoff, maxBackoff, splay time.Duration, rand func() float64) *gate {
	g := &gate{
		rand:    rand,
		limit:   1,
		most:    1,
		changed: make(chan struct{}),
		backoff: pace.Backoff{Min: minBackoff, Max: maxBackoff},
	}
	if splay > 0 {
		g.until = time.Now().Add(time.Duration(rand() * float64(splay)))
		g.backoff.Last = min(splay, maxBackoff) // others start, too: as after an outage
		g.restart = g.backoff.Last / 2
	}
	return g
}

// set changes the state and wakes the waiting shards. g.mu is held.
func (g *gate) set(s gateState) {
	g.state = s
	g.turn++
	g.inTurn = 0
	g.wake()
}

func (g *gate) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// release gives p back when nothing was learnt: the queue stops, or the answer said
// something about the samples only.
func (g *gate) release(p pass) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.takeBack(p)
}

// takeBack is release with g.mu held.
func (g *gate) takeBack(p pass) {
	if p.behind {
		g.behind--
		g.wake()
		return
	}
	g.flying--
	if p.turn == g.turn {
		g.inTurn--
	}
	if g.state != gateOpen || g.flying+1 >= g.limit {
		g.wake()
	}
}

// delivered gives p back after data went through: whatever the trouble was, it is over,
// unless it came up after this request was sent. The gate opens for one request at a time,
// with a while between them at first; see pace.Backoff.Ease, widen.
func (g *gate) delivered(p pass) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.takeBack(p)
	if p.turn != g.turn {
		return
	}
	g.until, g.restart = time.Time{}, 0
	if wait := g.backoff.Ease(g.rand()); wait > 0 {
		g.until = time.Now().Add(wait)
	}
	if g.state == gateOpen {
		return
	}
	g.holds.Reset()
	g.since, g.why = time.Time{}, ""
	g.emptyPassedSince, g.emptyAnswered, g.answered = false, false, false
	g.set(gateOpen)
}

// longAway is after how long pauses grow to their bound although nothing answers: a
// receiver that many agents have waited for so long has much to do when it comes back.
const longAway = 5 * time.Minute

// failed gives p back after a failure that passes by itself. after is what the
// receiver asked for, 0 if nothing; answered says whether it answered at all.
func (g *gate) failed(p pass, why string, after time.Duration, answered bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.takeBack(p)
	now := time.Now()
	if p.turn != g.turn {
		// Another request of the same turn failed before. Only a longer wait counts.
		if g.state == gatePaused && now.Add(after).After(g.until) {
			g.until = now.Add(pace.RetryLate(after, g.rand()))
			g.peace = g.until
			g.wake()
		}
		return
	}
	g.trouble(now, why, answered)
	brief := !answered && now.Sub(g.since) < longAway
	wait := pace.RetryLate(after, g.rand())
	g.peace = now.Add(wait)
	pause := g.backoff.Min + time.Duration(g.rand()*float64(g.restart))
	if g.restart == 0 {
		pause = g.backoff.Next(g.rand(), brief)
	}
	g.restart = 0
	g.until = now.Add(max(pause, wait))
	g.set(gatePaused)
}

// refused gives p back after an answer that refuses requests as such.
func (g *gate) refused(p pass, why string) { g.hold(p, why, false) }

// refusedData is refused for a target that refuses samples, and perhaps nothing else.
func (g *gate) refusedData(p pass, why string) { g.hold(p, why, true) }

func (g *gate) hold(p pass, why string, byData bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.takeBack(p)
	if p.turn != g.turn {
		return
	}
	now := time.Now()
	g.trouble(now, why, true)
	g.refusals++
	g.byData = byData
	g.until = now.Add(g.holds.Next(g.rand(), byData))
	if p.pokes != g.pokes {
		// A credential changed while the request was under way: what was refused may be
		// the old one, and nobody will poke again.
		g.until = time.Time{}
	}
	g.set(gateHeld)
}

// passed gives the test pass p back after the target accepted an empty write: data may
// be tried, one request at a time. The schedule goes on where it was until data passes.
func (g *gate) passed(p pass) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.takeBack(p)
	g.emptyPasses, g.emptyPassedSince, g.emptyAnswered = true, true, true
	if p.turn == g.turn {
		g.set(gateUnproven)
	}
}

// resume gives the test pass p back after the target answered as it does when well.
func (g *gate) resume(p pass) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.takeBack(p)
	if p.turn == g.turn {
		g.set(gateUnproven)
	}
}

// trouble notes since when and why nothing goes through. g.mu is held.
func (g *gate) trouble(now time.Time, why string, answered bool) {
	if g.since.IsZero() {
		g.since = now
		g.emptyPassedSince, g.emptyAnswered = false, false // what passed before the trouble says nothing about it
	}
	g.troubles++
	g.limit = 1 // when it opens again
	g.why, g.answered = why, answered
}

// current reports whether nothing has changed since p was given out.
func (g *gate) current(p pass) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return p.turn == g.turn
}

// poke makes a held or paused target due now; if a request is under way and is refused,
// the target is tested once more at once.
func (g *gate) poke() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.peace = time.Time{}
	g.due()
}

// retry is poke that does not end the time for which the receiver asked to be left in peace.
func (g *gate) retry() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.due()
}

// due makes the target due as soon as it may be. g.mu is held.
func (g *gate) due() {
	g.pokes++
	if g.until = (time.Time{}); time.Now().Before(g.peace) {
		g.until = g.peace
	}
	g.wake()
}

// hurry ends the distance between requests, as the queue stops; not what is due to trouble.
func (g *gate) hurry() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.since.IsZero() {
		g.until = time.Time{}
		g.backoff.Last = 0
		g.limit = g.most
		g.wake()
	}
}

// setLimit changes how many requests may be under way while open: at once, unless trouble
// or the start was a moment ago.
func (g *gate) setLimit(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n = max(n, 1); g.limit == g.most && g.backoff.Last == 0 {
		g.limit = n
	}
	g.most = n
	g.limit = min(g.limit, n)
	g.wake()
}

// widen doubles how many requests may be under way, up to what setLimit said. It is called
// each second in which the target did not ask to go slower.
func (g *gate) widen() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state == gateOpen && g.limit < g.most {
		g.limit = min(2*g.limit, g.most)
		g.wake()
	}
}

// sawEmptyPass notes that an empty write was accepted.
func (g *gate) sawEmptyPass() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.emptyPasses, g.emptyPassedSince, g.emptyAnswered = true, true, true
}

// sawEmptyAnswer notes that an empty write was answered, if not accepted.
func (g *gate) sawEmptyAnswer() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.emptyAnswered = true
}

// doubtEmpty forgets that an empty write was answered: that was some time ago.
func (g *gate) doubtEmpty() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.emptyAnswered = false
}

// forgetEmpty forgets that empty writes were accepted: that told nothing.
func (g *gate) forgetEmpty() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.emptyPasses, g.emptyPassedSince = false, false
}

// pause is how long the last pause was, less with each success since; 0 if that is forgotten.
func (g *gate) pause() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.backoff.Last
}

// random is a random number in [0, 1).
func (g *gate) random() float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.rand()
}

// takesEmpty reports whether the target has accepted an empty write.
func (g *gate) takesEmpty() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.emptyPasses
}

// gateView is a snapshot of the gate.
type gateView struct {
	state            gateState
	why              string
	since            time.Time // when trouble began, zero if there is none
	until            time.Time // the next try, zero if now
	emptyPasses      bool
	emptyPassedSince bool
	emptyAnswered    bool
	answered         bool
	troubles         uint64
	refusals         uint64
	byData           bool // held, and tested with samples
}

func (g *gate) view() gateView {
	g.mu.Lock()
	defer g.mu.Unlock()
	return gateView{g.state, g.why, g.since, g.until, g.emptyPasses, g.emptyPassedSince, g.emptyAnswered, g.answered, g.troubles, g.refusals, g.state == gateHeld && g.byData}
}
