package pace

const (
	// A doubling is judged by what was delivered in at least so many ticks, and at least so
	// many requests of each shard, after one tick in which connections are made.
	ticksToJudge    = 3
	requestsToJudge = 10
	// paysFrom is how many times as much twice the shards must deliver to be kept.
	paysFrom = 1.25
	// ticksToRetry is how long a doubling that did not pay is not tried again.
	ticksToRetry = 300
	// ticksToShrink is after how many ticks without being behind there are half the shards.
	ticksToShrink = 60
)

// Growth decides about the number of shards: doubled while the target is behind, for as
// long as that delivers more; halved when there is nothing to catch up with. What a
// receiver takes is bounded by its latency, and then more requests at a time take more;
// or by its own speed or this host's, and then they only take memory.
//
// It is a value without a clock: all it knows it is told at each tick. Not safe for
// concurrent use.
type Growth struct {
	Shards, Min, Max int // powers of two

	idle   int     // ticks in a row without being behind
	futile int     // ticks until a doubling may be tried again
	before float64 // samples a tick with half the shards; 0: the present number is no trial

	// What is being measured: since which totals, and for how many ticks; -1 before the
	// first tick of a window.
	ticks int
	from  Seen
}

// Seen is what is seen at a tick.
type Seen struct {
	Behind   bool   // there is a backlog
	Open     bool   // the target takes data at present
	Slow     bool   // it asked to go slower a moment ago
	Samples  uint64 // delivered so far
	Requests uint64 // that delivered them
}

// Begin says that a window begins. What was measured in the one before ends with it.
func (g *Growth) Begin() { g.ticks = -1 }

// Next takes what was seen at a tick and returns how many shards there should be. A new
// number holds from the following Begin on.
func (g *Growth) Next(p Seen) int {
	g.futile = max(g.futile-1, 0)
	if !p.Behind {
		g.before = 0 // it sufficed
		g.measure(p)
		if g.idle++; g.idle >= ticksToShrink {
			g.set(max(g.Shards/2, g.Min), 0)
		}
		return g.Shards
	}
	g.idle = 0
	switch {
	case !p.Open:
		g.measure(p)
		return g.Shards
	case p.Slow:
		g.measure(p)
		if g.before > 0 {
			g.undo()
		}
		return g.Shards
	case g.ticks < 0:
		g.measure(p)
		return g.Shards
	}
	g.ticks++
	if g.ticks < ticksToJudge || p.Requests-g.from.Requests < uint64(requestsToJudge*g.Shards) {
		return g.Shards
	}
	rate := float64(p.Samples-g.from.Samples) / float64(g.ticks)
	switch {
	case g.before > 0 && rate < paysFrom*g.before:
		g.undo()
	case g.futile == 0 && g.Shards < g.Max:
		g.set(min(2*g.Shards, g.Max), rate)
	default:
		g.before = 0
		g.measure(p)
	}
	return g.Shards
}

// measure begins to measure anew.
func (g *Growth) measure(p Seen) { g.ticks, g.from = 0, p }

// undo takes back a doubling that did not pay.
func (g *Growth) undo() {
	g.futile = ticksToRetry
	g.set(max(g.Shards/2, g.Min), 0)
}

// set is a new number; before is what half of it delivered, if it is a trial.
func (g *Growth) set(shards int, before float64) {
	g.Shards, g.before, g.idle, g.ticks = shards, before, 0, -1
}
