package gate

const (
	// A doubling is judged by the deliveries of at least ticksToJudge ticks and at least
	// requestsToJudge requests per shard, after one tick in which connections are made.
	ticksToJudge    = 3
	requestsToJudge = 10
	// paysFrom is the least ratio of deliveries, after to before a doubling, to keep it.
	paysFrom = 1.25
	// ticksToRetry is how long a doubling that did not pay off is not tried again.
	ticksToRetry = 300
	// ticksToShrink is after how many ticks without a backlog the number of shards is halved.
	ticksToShrink = 60
)

// Growth decides the number of shards: it doubles while the target has a backlog, as
// long as that delivers more, and halves when there is no backlog. The throughput of a
// receiver is bounded by its latency, and then more concurrent requests deliver more;
// or by its own speed or this host's, and then they only use memory.
//
// It is a value without a clock: all its input comes with each tick. Not safe for
// concurrent use.
type Growth struct {
	Shards, Min, Max int // powers of two

	idle   int     // consecutive ticks without a backlog
	futile int     // ticks until a doubling may be tried again
	before float64 // samples per tick with half the shards; 0: the present number is not being tried

	// The measuring window: the totals at its begin, and its length in ticks; -1 before the
	// first tick of a window.
	ticks int
	from  Seen
}

// Seen is the observation at a tick.
type Seen struct {
	Behind   bool   // there is a backlog
	Open     bool   // the target accepts data at present
	Slow     bool   // it asked to slow down a moment ago
	Samples  uint64 // delivered so far
	Requests uint64 // requests that delivered them
}

// Begin begins a window and discards the measurement of the previous one.
func (g *Growth) Begin() { g.ticks = -1 }

// Next takes the observation at a tick and returns the wanted number of shards. A new
// number takes effect at the following Begin.
func (g *Growth) Next(p Seen) int {
	g.futile = max(g.futile-1, 0)
	if !p.Behind {
		g.before = 0 // the shards sufficed
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

// measure restarts the measurement.
func (g *Growth) measure(p Seen) { g.ticks, g.from = 0, p }

// undo reverts a doubling that did not pay off.
func (g *Growth) undo() {
	g.futile = ticksToRetry
	g.set(max(g.Shards/2, g.Min), 0)
}

// set sets a new number; before is the rate with half as many shards, if this number is tried.
func (g *Growth) set(shards int, before float64) {
	g.Shards, g.before, g.idle, g.ticks = shards, before, 0, -1
}
