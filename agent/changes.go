package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"hwsagent/inputs/panics"
	"hwsagent/watchdog"
	"hwsagent/web"
)

// answerWithin is how long a reload, or a command about a target, may take before whoever asked
// gets an answer: that it has not ended, and what it waits for. A stop of a healthy target
// takes 1.1 s at most.
const answerWithin = 8 * time.Second

// errStopping means that a change was not made since the agent is about to stop.
var errStopping = errors.New("the agent stops")

// changes makes changes to the running agent, one at a time: reloads, and commands about
// targets. A change may wait for something that hangs; whoever asked for it does not.
// Safe for concurrent use.
type changes struct {
	within time.Duration // until whoever asks gets an answer, see answerWithin
	turn   chan struct{} // of length 1: full while a change is under way
	quit   chan struct{} // closed when the agent stops

	mu    sync.Mutex
	what  string // is under way, for people: "the reload"; "" if nothing is
	step  string // the work that it is at now: `stopping target "up"`
	since time.Time
}

func newChanges(within time.Duration) *changes {
	return &changes{within: within, turn: make(chan struct{}, 1), quit: make(chan struct{})}
}

// do makes a change and returns its error. Where the change does not begin in time,
// since another is under way, the error is [web.ErrNotBegun] and nothing is ever changed. Where
// it does not end by then the error is [web.ErrGoesOn], and the change goes on.
func (c *changes) do(what string, change func() error) error {
	late := time.NewTimer(c.within)
	defer late.Stop()
	select {
	case c.turn <- struct{}{}:
	case <-late.C:
		return fmt.Errorf("%s was %w, and changes nothing: %s", what, web.ErrNotBegun, c.busy())
	case <-c.quit:
		return fmt.Errorf("%s was %w: %w", what, web.ErrNotBegun, errStopping)
	}
	c.begin(what)
	done := make(chan error, 1)
	go func() {
		var err error
		watchdog.Do(context.Background(), what, func(context.Context) {
			var guard *panics.Guard // a panic is the error of this change
			err = guard.Do(change)
		})
		c.begin("")
		<-c.turn
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-late.C:
	case <-c.quit:
	}
	return fmt.Errorf("%s %w: %s", what, web.ErrGoesOn, c.busy())
}

func (c *changes) begin(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.what, c.step, c.since = what, "", time.Now()
}

// at notes what the change that is under way does now, in words such as "reading a file".
func (c *changes) at(step string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.step = step
}

// busy says what is under way, "" if nothing is.
func (c *changes) busy() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.what == "" {
		return ""
	}
	text := fmt.Sprintf("%s began at %s", c.what, c.since.Format(time.TimeOnly))
	if c.step != "" {
		text += " and is still " + c.step
	}
	return text
}

// overdue is busy where a change takes so long that whoever asked for it was answered before its end.
func (c *changes) overdue() string {
	c.mu.Lock()
	late := c.what != "" && time.Since(c.since) >= c.within
	c.mu.Unlock()
	if !late {
		return ""
	}
	return c.busy()
}

// refuse lets no further change begin, and answers everybody who waits. It is called once.
func (c *changes) refuse() { close(c.quit) }

// end waits for the change that is under way. It is called once, after refuse.
func (c *changes) end() { c.turn <- struct{}{} }
