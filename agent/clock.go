package agent

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hwsagent/meter"
	"hwsagent/web"
)

// Nothing in the agent is scheduled or dropped by the wall clock of this host, but
// samples carry its time: that it was stepped is a fact to know about them.
const (
	clockTick  = time.Second
	clockNoise = 20 * time.Millisecond // that a reading of all clocks may take

	// minStep is what counts as a step between two looks, a clockTick apart; clocks that are slewed, by up to a tenth, do not.
	minStep = 300 * time.Millisecond

	// minSuspend is what counts as a suspend. The clock that goes on meanwhile counts whole
	// seconds on many boards: a step is what is off by more than resumeError after one.
	minSuspend  = 500 * time.Millisecond
	resumeError = 2 * time.Second
)

// clockReading is what this host's clocks say at one moment.
type clockReading struct {
	wall time.Time     // without a monotonic reading
	mono time.Duration // since any point; stands still while the host is suspended
	boot time.Duration // since any point; goes on then. Equal to mono where there is no such clock
}

// clockChange tells by how much the wall clock was stepped between two readings (ahead if
// positive), and for how long the host was suspended; 0: not at all.
func clockChange(before, now clockReading) (step, suspended time.Duration) {
	mono := now.mono - before.mono
	tolerance := minStep + max(0, mono-clockTick)/10 // a look that comes late sees more of a slew
	if suspended = now.boot - before.boot - mono; suspended < minSuspend {
		suspended = 0
	} else {
		tolerance += resumeError
	}
	if step = now.wall.Sub(before.wall) - mono - suspended; step.Abs() <= tolerance {
		step = 0
	}
	return step, suspended
}

// clock watches the wall clock against those that nobody can set.
type clock struct {
	read   func() (clockReading, bool) // false: not this time
	logger *slog.Logger

	set      *meter.Set
	steps    *prometheus.CounterVec // by direction
	suspends prometheus.Counter

	mu   sync.Mutex
	last clockReading
	has  bool // last is one

	stepped, suspended occurrence
}

// occurrence is how often something happened, and when last, and how much that was.
type occurrence struct {
	count uint64
	at    time.Time // with a monotonic reading
	size  time.Duration
}

func (o *occurrence) happened(at time.Time, size time.Duration) {
	o.count, o.at, o.size = o.count+1, at, size
}

func newClock(logger *slog.Logger) *clock {
	set := meter.NewSet("hwsagent_clock_")
	c := &clock{
		read: readClocks(time.Now()), logger: logger, set: set,
		steps: set.CounterVec(meter.Sent, "steps_total",
			"How often this host's wall clock was set, by the direction: forward, back. Changes below 0.3 s, and what a time server slews, do not count.", "direction"),
		suspends: set.Counter(meter.Shown, "suspends_total", "How often this host was suspended; told apart from steps on Linux only."),
	}
	c.steps.WithLabelValues(forward)
	c.steps.WithLabelValues(back)
	return c
}

const forward, back = "forward", "back"

// readClocks makes a function that reads the clocks, monotonic ones since base.
func readClocks(base time.Time) func() (clockReading, bool) {
	return func() (clockReading, bool) {
		for range 5 {
			before := time.Now()
			boot, known := bootTime()
			after := time.Now()
			// Whoever is stopped in the middle would see steps that are none.
			mono, wall := after.Sub(before), after.Round(0).Sub(before.Round(0))
			if mono > clockNoise || (wall-mono).Abs() > clockNoise {
				continue
			}
			r := clockReading{wall: before.Round(0), mono: before.Sub(base), boot: boot}
			if !known {
				r.boot = r.mono
			}
			return r, true
		}
		return clockReading{}, false
	}
}

// run watches until ctx ends.
func (c *clock) run(ctx context.Context) {
	tick := time.NewTicker(clockTick)
	defer tick.Stop()
	for {
		c.look()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// look compares the clocks with those of the last time.
func (c *clock) look() {
	now, ok := c.read()
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before, had := c.last, c.has
	c.last, c.has = now, true
	if !had {
		return
	}
	step, suspended := clockChange(before, now)
	if suspended > 0 {
		c.suspended.happened(time.Now(), suspended)
		c.suspends.Inc()
		c.logger.Info("The host was suspended; nothing was collected meanwhile", "for", suspended.Round(time.Millisecond))
	}
	if step == 0 {
		return
	}
	direction := forward
	if step < 0 {
		direction = back
	}
	c.stepped.happened(time.Now(), step)
	c.steps.WithLabelValues(direction).Inc()
	c.logger.Warn("This host's clock was set; samples carry the new time from now on, cadence and backlog stay as they are",
		"by", step.Round(time.Millisecond), "direction", direction, "now", now.wall)
}

// lastStep is when the clock was last set, with a monotonic reading; zero if it was not.
func (c *clock) lastStep() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stepped.at
}

// status is what is known, as of now.
func (c *clock) status(now time.Time) web.ClockStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return web.ClockStatus{
		Steps: c.stepped.count, LastStepAt: byClock(now, c.stepped.at), LastStepSeconds: c.stepped.size.Seconds(),
		Suspends: c.suspended.count, LastSuspendAt: byClock(now, c.suspended.at), LastSuspendSeconds: c.suspended.size.Seconds(),
	}
}

// byClock is when t was by the wall clock as it is set now, which is what people compare
// it with, if t is an event of this process; other times stay as they are.
func byClock(now, t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return now.Add(t.Sub(now))
}
