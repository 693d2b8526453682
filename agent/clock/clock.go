// Package clock watches this host's wall clock, and reports its steps and the suspends of the host. Samples carry the
// time of this clock, so a step puts them at a wrong time.
package clock

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hwsagent/agent/status"
	"hwsagent/internal/meter"
)

// Tick is how often a [Clock] reads the clocks.
const Tick = time.Second

const (
	noise = 20 * time.Millisecond // the longest that a reading of all clocks may take

	// minStep is the least change between two readings, a [Tick] apart, that counts as a step. A clock that is being
	// slewed, by up to a tenth, stays below it.
	minStep = 300 * time.Millisecond

	// minSuspend is the least gap that counts as a suspend. On many boards the clock that runs on during a suspend
	// counts whole seconds, so after one only a change beyond resumeError counts as a step.
	minSuspend  = 500 * time.Millisecond
	resumeError = 2 * time.Second
)

// reading holds this host's clocks at one moment.
type reading struct {
	wall time.Time     // without a monotonic reading
	mono time.Duration // since any point; stands still while the host is suspended
	boot time.Duration // since any point; includes suspends. Equal to mono where there is no such clock
}

// change returns by how much the wall clock was stepped between two readings (positive: forward), and for how long
// the host was suspended; 0 means not at all.
func change(before, now reading) (step, suspended time.Duration) {
	mono := now.mono - before.mono
	tolerance := minStep + max(0, mono-Tick)/10 // a late reading sees more of a slew
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

// Clock compares the wall clock with the clocks that cannot be set. Safe for concurrent use.
type Clock struct {
	read   func() (reading, bool) // false: no usable reading this time
	logger *slog.Logger

	Metrics  *meter.Set
	steps    *prometheus.CounterVec // by direction
	suspends prometheus.Counter

	mu   sync.Mutex
	last reading
	has  bool // last is set

	stepped, suspended occurrence
}

// occurrence records how often an event happened, when it happened last, and how large it was then.
type occurrence struct {
	count uint64
	at    time.Time // with a monotonic reading
	size  time.Duration
}

func (o *occurrence) happened(at time.Time, size time.Duration) {
	o.count, o.at, o.size = o.count+1, at, size
}

// New returns a clock that has not been read.
func New(logger *slog.Logger) *Clock {
	set := meter.NewSet("hwsagent_clock_")
	c := &Clock{
		read: readClocks(time.Now()), logger: logger, Metrics: set,
		steps: set.CounterVec(meter.Sent, "steps_total",
			"How often this host's wall clock was set, by direction: forward, back. Changes below 0.3 s, and slewing by a time service, do not count.", "direction"),
		suspends: set.Counter(meter.Shown, "suspends_total", "How often this host was suspended; distinguished from clock steps on Linux only."),
	}
	c.steps.WithLabelValues(forward)
	c.steps.WithLabelValues(back)
	return c
}

const forward, back = "forward", "back"

// readClocks returns a function that reads the clocks, the monotonic ones since base.
func readClocks(base time.Time) func() (reading, bool) {
	return func() (reading, bool) {
		for range 5 {
			before := time.Now()
			boot, known := bootTime()
			after := time.Now()
			// A process stopped between the two readings would see steps that did not happen.
			mono, wall := after.Sub(before), after.Round(0).Sub(before.Round(0))
			if mono > noise || (wall-mono).Abs() > noise {
				continue
			}
			r := reading{wall: before.Round(0), mono: before.Sub(base), boot: boot}
			if !known {
				r.boot = r.mono
			}
			return r, true
		}
		return reading{}, false
	}
}

// Run reads the clocks with each tick, a [Tick] apart, until ctx ends.
func (c *Clock) Run(ctx context.Context, ticks <-chan time.Time) {
	for {
		c.look()
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
	}
}

// look compares the clocks with the previous reading.
func (c *Clock) look() {
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
	step, suspended := change(before, now)
	if suspended > 0 {
		c.suspended.happened(time.Now(), suspended)
		c.suspends.Inc()
		c.logger.Info("The host was suspended; no samples were collected meanwhile", "for", suspended.Round(time.Millisecond))
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
	c.logger.Warn("This host's clock was set; samples carry the new time from now on, intervals and backlog are unaffected",
		"by", step.Round(time.Millisecond), "direction", direction, "now", now.wall)
}

// LastStep returns when the clock was last set, with a monotonic reading; zero if it never was.
func (c *Clock) LastStep() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stepped.at
}

// Status returns the clock's part of the status at now.
func (c *Clock) Status(now time.Time) status.ClockStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return status.ClockStatus{
		Steps: c.stepped.count, LastStepAt: OnWall(now, c.stepped.at), LastStepSeconds: c.stepped.size.Seconds(),
		Suspends: c.suspended.count, LastSuspendAt: OnWall(now, c.suspended.at), LastSuspendSeconds: c.suspended.size.Seconds(),
	}
}

// OnWall converts the time of an event of this process to the wall clock as it is set now, with which people compare
// it. Other times stay as they are.
func OnWall(now, t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return now.Add(t.Sub(now))
}
