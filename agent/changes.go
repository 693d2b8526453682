package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"hwsagent/agent/control"
	"hwsagent/agent/web"
	"hwsagent/internal/panics"
	"hwsagent/internal/watchdog"
)

// answerWithin bounds how long the client of a reload, or of a command about a target, waits for an answer. After that
// the answer says that the change has not ended, and what it waits for. Stopping a healthy target takes 1.1 s at most.
const answerWithin = 8 * time.Second

// changes makes changes to the running agent, one at a time: reloads, and commands about targets. A change may wait for
// something that hangs; its client does not. Safe for concurrent use.
type changes struct {
	within time.Duration // until the client gets an answer, see answerWithin
	turn   chan struct{} // of length 1: full while a change is in progress
	quit   chan struct{} // closed when the agent stops

	mu    sync.Mutex
	what  string // the change in progress, for people: "the reload"; "" if there is none
	step  string // its current step:  `stopping target "up"`
	since time.Time
}

func newChanges(within time.Duration) *changes {
	return &changes{within: within, turn: make(chan struct{}, 1), quit: make(chan struct{})}
}

// do makes a change and returns its error. If the change cannot begin in time, because another is in progress, the
// error is [web.ErrNotBegun] and the change never happens. If it begins but does not end in time, the error is
// [web.ErrGoesOn] and the change continues.
func (c *changes) do(what string, change func() error) error {
	late := time.NewTimer(c.within)
	defer late.Stop()
	select {
	case c.turn <- struct{}{}:
	case <-late.C:
		return fmt.Errorf("%s was %w, and changes nothing: %s", what, web.ErrNotBegun, c.busy())
	case <-c.quit:
		return fmt.Errorf("%s was %w: %w", what, web.ErrNotBegun, control.ErrStopping)
	}
	c.begin(what)
	done := make(chan error, 1)
	go func() {
		var err error
		watchdog.Do(context.Background(), what, func(context.Context) {
			var guard *panics.Guard // turns a panic into the error of this change
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

// at records the current step of the change in progress, in words such as "reading a file".
func (c *changes) at(step string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.step = step
}

// busy describes the change in progress; "" if there is none.
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

// overdue returns the text of busy if the change in progress has taken so long that its client was answered before its
// end, else "".
func (c *changes) overdue() string {
	c.mu.Lock()
	late := c.what != "" && time.Since(c.since) >= c.within
	c.mu.Unlock()
	if !late {
		return ""
	}
	return c.busy()
}

// refuse keeps further changes from beginning, and answers all waiting clients. It must be called once.
func (c *changes) refuse() { close(c.quit) }

// end waits for the change in progress. It must be called once, after refuse.
func (c *changes) end() { c.turn <- struct{}{} }
