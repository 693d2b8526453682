// Package gate lets the requests of one target pass: one at a time until the target takes data, none while it is paused or held.
//
// A [Gate] has no goroutine and sends nothing. Who wants to send gets a [Pass], and gives it back with the answer's meaning:
//
//	unproven ── Delivered ──> open ── Failed ──> paused ── the pause is over ──> one request at a time
//	    ^                      └──── Refused ──> held ── the schedule or Poke ──> one test at a time
//	    └──────────────────────────── Passed, Resume ─────────────────────────────────┘
package gate

import (
	"sync"
	"time"

	"hwsagent/remotewrite/pace"
)

// State says what a target takes at present.
type State uint8

const (
	// Unproven: nothing is known. One request at a time, until one delivers data.
	Unproven State = iota
	// Open: the target takes data; up to what SetLimit allows, at a time.
	Open
	// Paused: the last request failed in a way that passes. Nothing is sent until
	// the pause is over, then one request at a time.
	Paused
	// Held: the target refuses requests as such. Nothing is sent but tests, one at a
	// time, at the times of the hold schedule or when poked.
	Held
)

// Gate is where all shards of a target wait before they send. Failure is a property of
// the target, so pauses, Retry-After and holds are target-wide: ten shards do not knock
// ten times. Safe for concurrent use.
type Gate struct {
	rand func() float64

	mu      sync.Mutex
	state   State
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
	pokes    uint64 // how often Poke was called, ever

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

// Pass is the right to send one request. Every pass goes back through one of the
// gate's methods that take it.
type Pass struct {
	turn  uint64
	pokes uint64 // of the gate, when the pass was given out
	Test  bool   // the target is held: test it, do not send a batch

	// Behind: it is for the backlog, and takes nothing from what is live.
	Behind bool
}

// New makes a gate through which the first request goes at random within splay. Pauses grow from minBackoff to maxBackoff; rand gives
// numbers in [0, 1), and is called under the gate's lock.
func New(minBackoff, maxBackoff, splay time.Duration, rand func() float64) *Gate {
	g := &Gate{
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
func (g *Gate) set(s State) {
	g.state = s
	g.turn++
	g.inTurn = 0
	g.wake()
}

func (g *Gate) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// Release gives p back when nothing was learnt: the queue stops, or the answer said
// something about the samples only.
func (g *Gate) Release(p Pass) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.takeBack(p)
}

// takeBack is Release with g.mu held.
func (g *Gate) takeBack(p Pass) {
	if p.Behind {
		g.behind--
		g.wake()
		return
	}
	g.flying--
	if p.turn == g.turn {
		g.inTurn--
	}
	if g.state != Open || g.flying+1 >= g.limit {
		g.wake()
	}
}

// Delivered gives p back after data went through: whatever the trouble was, it is over,
// unless it came up after this request was sent. The gate opens for one request at a time,
// with a while between them at first; see [pace.Backoff.Ease] and Widen.
func (g *Gate) Delivered(p Pass) {
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
	if g.state == Open {
		return
	}
	g.holds.Reset()
	g.since, g.why = time.Time{}, ""
	g.emptyPassedSince, g.emptyAnswered, g.answered = false, false, false
	g.set(Open)
}

// longAway is after how long pauses grow to their bound although nothing answers: a
// receiver that many agents have waited for so long has much to do when it comes back.
const longAway = 5 * time.Minute

// Failed gives p back after a failure that passes by itself. after is what the
// receiver asked for, 0 if nothing; answered says whether it answered at all.
func (g *Gate) Failed(p Pass, why string, after time.Duration, answered bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.takeBack(p)
	now := time.Now()
	if p.turn != g.turn {
		// Another request of the same turn failed before. Only a longer wait counts.
		if g.state == Paused && now.Add(after).After(g.until) {
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
	g.set(Paused)
}

// Refused gives p back after an answer that refuses requests as such.
func (g *Gate) Refused(p Pass, why string) { g.hold(p, why, false) }

// RefusedData is Refused for a target that refuses samples, and perhaps nothing else.
func (g *Gate) RefusedData(p Pass, why string) { g.hold(p, why, true) }

func (g *Gate) hold(p Pass, why string, byData bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.takeBack(p)
	if p.turn != g.turn {
		return
	}
	now := time.Now()
	g.trouble(now, why, true)
	g.byData = byData
	g.until = now.Add(g.holds.Next(g.rand(), byData))
	if p.pokes != g.pokes {
		// A credential changed while the request was under way: the old one may be what was
		// refused, and Poke is not called again.
		g.until = time.Time{}
	}
	g.set(Held)
}

// Passed gives the test pass p back after the target accepted an empty write: data may
// be tried, one request at a time. The schedule goes on where it was until data passes.
func (g *Gate) Passed(p Pass) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.takeBack(p)
	g.emptyPasses, g.emptyPassedSince, g.emptyAnswered = true, true, true
	if p.turn == g.turn {
		g.set(Unproven)
	}
}

// Resume gives the test pass p back after the target answered as it does when well.
func (g *Gate) Resume(p Pass) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.takeBack(p)
	if p.turn == g.turn {
		g.set(Unproven)
	}
}

// trouble notes since when and why nothing goes through. g.mu is held.
func (g *Gate) trouble(now time.Time, why string, answered bool) {
	if g.since.IsZero() {
		g.since = now
		g.emptyPassedSince, g.emptyAnswered = false, false // what passed before the trouble says nothing about it
	}
	g.troubles++
	g.limit = 1 // when it opens again
	g.why, g.answered = why, answered
}

// Current reports whether nothing has changed since p was given out.
func (g *Gate) Current(p Pass) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return p.turn == g.turn
}

// Poke makes a held or paused target due now; if a request is under way and is refused,
// the target is tested once more at once.
func (g *Gate) Poke() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.peace = time.Time{}
	g.due()
}

// Retry is Poke that does not end the time for which the receiver asked to be left in peace.
func (g *Gate) Retry() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.due()
}

// due makes the target due as soon as it may be. g.mu is held.
func (g *Gate) due() {
	g.pokes++
	if g.until = (time.Time{}); time.Now().Before(g.peace) {
		g.until = g.peace
	}
	g.wake()
}

// Hurry ends the distance between requests, as the queue stops; not what is due to trouble.
func (g *Gate) Hurry() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.since.IsZero() {
		g.until = time.Time{}
		g.backoff.Last = 0
		g.limit = g.most
		g.wake()
	}
}

// SetLimit changes how many requests may be under way while open: at once, unless trouble
// or the start was a moment ago.
func (g *Gate) SetLimit(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n = max(n, 1); g.limit == g.most && g.backoff.Last == 0 {
		g.limit = n
	}
	g.most = n
	g.limit = min(g.limit, n)
	g.wake()
}

// Widen doubles how many requests may be under way, up to what SetLimit said. It is called
// each second in which the target did not ask to go slower.
func (g *Gate) Widen() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state == Open && g.limit < g.most {
		g.limit = min(2*g.limit, g.most)
		g.wake()
	}
}

// SawEmptyPass notes that an empty write was accepted.
func (g *Gate) SawEmptyPass() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.emptyPasses, g.emptyPassedSince, g.emptyAnswered = true, true, true
}

// SawEmptyAnswer notes that an empty write was answered, if not accepted.
func (g *Gate) SawEmptyAnswer() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.emptyAnswered = true
}

// DoubtEmpty forgets that an empty write was answered: that was some time ago.
func (g *Gate) DoubtEmpty() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.emptyAnswered = false
}

// ForgetEmpty forgets that empty writes were accepted: that told nothing.
func (g *Gate) ForgetEmpty() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.emptyPasses, g.emptyPassedSince = false, false
}

// Pause is how long the last pause was, less with each success since; 0 if that is forgotten.
func (g *Gate) Pause() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.backoff.Last
}

// Random is a random number in [0, 1).
func (g *Gate) Random() float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.rand()
}

// TakesEmpty reports whether the target has accepted an empty write.
func (g *Gate) TakesEmpty() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.emptyPasses
}

// View is a snapshot of the gate.
type View struct {
	State            State
	Why              string    // what the target waits for, for people
	Since            time.Time // when trouble began, zero if there is none
	Until            time.Time // the next try, zero if now
	EmptyPasses      bool      // the target accepted an empty write once
	EmptyPassedSince bool      // it accepted one since data last went through
	EmptyAnswered    bool      // it answered one, in whatever way, since then
	Answered         bool      // the last failure since then was an answer
	Troubles         uint64    // how often a request failed as such, ever
	ByData           bool      // held, and tested with samples
}

// View returns a snapshot.
func (g *Gate) View() View {
	g.mu.Lock()
	defer g.mu.Unlock()
	return View{g.state, g.why, g.since, g.until, g.emptyPasses, g.emptyPassedSince, g.emptyAnswered, g.answered, g.troubles, g.state == Held && g.byData}
}
