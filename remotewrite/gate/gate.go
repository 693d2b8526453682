// Package gate admits the requests of one target: one at a time until the target accepts data, none while it is paused or held.
// It also decides how fast they go: the pauses after failures, the size of requests, and the number of sending shards. It has no I/O.
//
// A [Gate] has no goroutine and sends no requests. A sender gets a [Pass] for each request and returns it with the meaning of the answer:
//
//	unproven ── Delivered ──> open ── Failed ──> paused ── the pause is over ──> one request at a time
//	    ^                      └──── Refused ──> held ── the schedule or Poke ──> one test at a time
//	    └──────────────────────────── Resume ─────────────────────────────────────────┘
package gate

import (
	"sync"
	"time"
)

// State is how a target accepts requests at present.
type State uint8

const (
	// Unproven: the state of the target is unknown. One request at a time, until one delivers data.
	Unproven State = iota
	// Open: the target accepts data; as many requests at a time as SetLimit allows.
	Open
	// Paused: the last request failed temporarily. No request is sent until
	// the pause is over, then one at a time.
	Paused
	// Held: the target refuses all requests. Only tests are sent, one at a
	// time, on the hold schedule or when poked.
	Held
)

// Gate is where all shards of a target wait before they send. A failure concerns
// the whole target, so pauses, Retry-After and holds do too: ten shards do not retry
// ten times. Safe for concurrent use.
type Gate struct {
	rand func() float64

	mu      sync.Mutex
	state   State
	turn    uint64        // grows with each change of state; a late answer from an earlier turn changes nothing
	flying  int           // requests in flight
	behind  int           // backlog requests in flight that are not counted in flying
	waiting int           // waiting requests with new samples
	inTurn  int           // requests in flight of the present turn; the gate no longer waits for the others
	limit   int           // most requests in flight while open; 1 <= limit <= most
	most    int           // upper bound of limit
	until   time.Time     // no request before: the end of the pause, or the time of the next test or request
	why     string        // what the target waits for, to show to people
	since   time.Time     // when data last stopped going through; zero while it goes through
	changed chan struct{} // closed and replaced at each change
	backoff Backoff
	holds   Holds

	// byData: the target is held because it refuses samples.
	byData bool

	troubles uint64 // failed or refused requests since the gate was made
	pokes    uint64 // calls of Poke and Retry since the gate was made

	peace time.Time // the receiver asked for no requests before this time, by Retry-After

	// restart bounds the random extra delay before the retry of the first failure after a start; 0 once a request
	// was delivered or has failed. The backoff set at a start applies to the pauses after that one.
	restart time.Duration

	// answered: the last failure since data last went through was an answer.
	answered bool
}

// Pass is the right to send one request. Every pass must be returned through one of the
// gate's methods that take it.
type Pass struct {
	turn  uint64
	pokes uint64 // Gate.pokes when the pass was issued
	Test  bool   // the target is held: test it, do not send a batch

	// Behind: the pass is for the backlog and does not use a place of new samples.
	Behind bool
}

// New makes a gate that admits the first request at a random time within splay. Pauses grow from minBackoff to maxBackoff; rand returns
// numbers in [0, 1) and is called under the gate's lock.
func New(minBackoff, maxBackoff, splay time.Duration, rand func() float64) *Gate {
	g := &Gate{
		rand:    rand,
		limit:   1,
		most:    1,
		changed: make(chan struct{}),
		backoff: Backoff{Min: minBackoff, Max: maxBackoff},
	}
	if splay > 0 {
		g.until = time.Now().Add(time.Duration(rand() * float64(splay)))
		g.backoff.Last = min(splay, maxBackoff) // other agents may start too, as after an outage
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

// Release returns p when the answer proved nothing about the target: the queue stops, or the answer was
// about the samples only.
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

// Delivered returns p after data went through. That ends any trouble,
// unless the trouble began after this request was sent. The gate opens for one request at a time,
// with a delay between requests at first; see [Backoff.Ease] and Widen.
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
	g.answered = false
	g.set(Open)
}

// longAway is how long a target may be unreachable before its pauses grow to their full bound: by then
// many agents wait for the receiver, and it has much to do when it comes back.
const longAway = 5 * time.Minute

// Failed returns p after a temporary failure. after is the wait that the
// receiver asked for, 0 if none; answered says whether it answered at all.
func (g *Gate) Failed(p Pass, why string, after time.Duration, answered bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.takeBack(p)
	now := time.Now()
	if p.turn != g.turn {
		// Another request of the same turn failed first. Only a longer wait counts.
		if g.state == Paused && now.Add(after).After(g.until) {
			g.until = now.Add(RetryLate(after, g.rand()))
			g.peace = g.until
			g.wake()
		}
		return
	}
	g.trouble(now, why, answered)
	brief := !answered && now.Sub(g.since) < longAway
	wait := RetryLate(after, g.rand())
	g.peace = now.Add(wait)
	pause := g.backoff.Min + time.Duration(g.rand()*float64(g.restart))
	if g.restart == 0 {
		pause = g.backoff.Next(g.rand(), brief)
	}
	g.restart = 0
	g.until = now.Add(max(pause, wait))
	g.set(Paused)
}

// Refused returns p after an answer that refuses all requests.
func (g *Gate) Refused(p Pass, why string) { g.hold(p, why, false) }

// RefusedData is Refused for a target that refuses samples.
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
		// A credential changed while the request was in flight. The refusal may be due to the old
		// one, and Poke will not be called again.
		g.until = time.Time{}
	}
	g.set(Held)
}

// Wait makes the target due no earlier than after from now: the receiver asked for that while it is held.
func (g *Gate) Wait(after time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if peace := time.Now().Add(RetryLate(after, g.rand())); after > 0 && g.until.Before(peace) {
		g.until, g.peace = peace, peace
		g.wake()
	}
}

// Resume returns the test pass p after the target answered as it does in its normal state.
func (g *Gate) Resume(p Pass) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.takeBack(p)
	if p.turn == g.turn {
		g.set(Unproven)
	}
}

// trouble records when and why data stopped going through. g.mu is held.
func (g *Gate) trouble(now time.Time, why string, answered bool) {
	if g.since.IsZero() {
		g.since = now
	}
	g.troubles++
	g.limit = 1 // for when the gate opens again
	g.why, g.answered = why, answered
}

// Current reports whether the state is unchanged since p was issued.
func (g *Gate) Current(p Pass) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return p.turn == g.turn
}

// Poke makes a held or paused target due now; if a request is in flight and is refused,
// the target is tested once more at once.
func (g *Gate) Poke() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.peace = time.Time{}
	g.due()
}

// Retry is Poke, but still waits for the time that the receiver asked for by Retry-After.
func (g *Gate) Retry() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.due()
}

// due makes the target due as soon as its Retry-After allows. g.mu is held.
func (g *Gate) due() {
	g.pokes++
	if g.until = (time.Time{}); time.Now().Before(g.peace) {
		g.until = g.peace
	}
	g.wake()
}

// Hurry ends the delays between requests when the queue stops, but not the pauses due to trouble.
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

// SetLimit changes how many requests may be in flight while open: at once, unless trouble
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

// Widen doubles how many requests may be in flight, up to the value of SetLimit. It is called
// each second in which the target did not ask to slow down.
func (g *Gate) Widen() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state == Open && g.limit < g.most {
		g.limit = min(2*g.limit, g.most)
		g.wake()
	}
}

// Pause returns the length of the last pause, reduced by each success since; 0 once it has decayed.
func (g *Gate) Pause() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.backoff.Last
}

// Random returns a random number in [0, 1).
func (g *Gate) Random() float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.rand()
}

// View is a snapshot of the gate.
type View struct {
	State    State
	Why      string    // what the target waits for, to show to people
	Since    time.Time // when trouble began, zero if there is none
	Until    time.Time // the next try, zero if now
	Answered bool      // the last failure since then was an answer
	Troubles uint64    // failed or refused requests since the gate was made
	ByData   bool      // held because it refuses samples
}

// View returns a snapshot.
func (g *Gate) View() View {
	g.mu.Lock()
	defer g.mu.Unlock()
	return View{g.state, g.why, g.since, g.until, g.answered, g.troubles, g.state == Held && g.byData}
}

const (
	// LongDown is how long a target must be down until its window is discarded.
	LongDown = 30 * time.Second
	// longFailing replaces LongDown for a target that answers with server errors: until then one batch may be the reason, and is
	// tried in parts.
	longFailing = 6 * time.Minute
)

// LongDown reports whether the target has been down for so long that its window is discarded.
func (v View) LongDown(now time.Time) bool {
	switch {
	case v.Since.IsZero():
		return false
	case v.State == Paused && v.Answered:
		return now.Sub(v.Since) >= longFailing
	}
	return now.Sub(v.Since) >= LongDown
}
