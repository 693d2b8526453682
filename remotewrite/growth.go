package remotewrite

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

// growth decides about the number of shards: doubled while the target is behind, for as
// long as that delivers more; halved when there is nothing to catch up with. What a
// receiver takes is bounded by its latency, and then more requests at a time take more;
// or by its own speed or this host's, and then they only take memory.
//
// It is a value without a clock: all it knows it is told at each tick. Not safe for
// concurrent use.
type growth struct {
	shards, min, max int // powers of two

	idle   int     // ticks in a row without being behind
	futile int     // ticks until a doubling may be tried again
	before float64 // samples a tick with half the shards; 0: the present number is no trial

	// What is being measured: since which totals, and for how many ticks; -1 before the
	// first tick of a window.
	ticks int
	from  pace
}

// pace is what is seen at a tick.
type pace struct {
	behind   bool
	open     bool   // the target takes data at present
	slow     bool   // it asked to go slower a moment ago
	samples  uint64 // delivered so far
	requests uint64 // that delivered them
}

// begin says that a window begins. What was measured in the one before ends with it.
func (g *growth) begin() { g.ticks = -1 }

// next takes what was seen at a tick and returns how many shards there should be. A new
// number holds from the following begin on.
func (g *growth) next(p pace) int {
	g.futile = max(g.futile-1, 0)
	if !p.behind {
		g.before = 0 // it sufficed
		g.measure(p)
		if g.idle++; g.idle >= ticksToShrink {
			g.set(max(g.shards/2, g.min), 0)
		}
		return g.shards
	}
	g.idle = 0
	switch {
	case !p.open:
		g.measure(p)
		return g.shards
	case p.slow:
		g.measure(p)
		if g.before > 0 {
			g.undo()
		}
		return g.shards
	case g.ticks < 0:
		g.measure(p)
		return g.shards
	}
	g.ticks++
	if g.ticks < ticksToJudge || p.requests-g.from.requests < uint64(requestsToJudge*g.shards) {
		return g.shards
	}
	rate := float64(p.samples-g.from.samples) / float64(g.ticks)
	switch {
	case g.before > 0 && rate < paysFrom*g.before:
		g.undo()
	case g.futile == 0 && g.shards < g.max:
		g.set(min(2*g.shards, g.max), rate)
	default:
		g.before = 0
		g.measure(p)
	}
	return g.shards
}

// measure begins to measure anew.
func (g *growth) measure(p pace) { g.ticks, g.from = 0, p }

// undo takes back a doubling that did not pay.
func (g *growth) undo() {
	g.futile = ticksToRetry
	g.set(max(g.shards/2, g.min), 0)
}

// set is a new number; before is what half of it delivered, if it is a trial.
func (g *growth) set(shards int, before float64) {
	g.shards, g.before, g.idle, g.ticks = shards, before, 0, -1
}
