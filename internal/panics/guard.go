package panics

import (
	"log/slog"
	"sync"
	"time"
)

const (
	// logAgain is the least time between two log lines about the same place.
	logAgain = time.Hour
	// maxPlaces bounds the places that a guard distinguishes. All further places count as one.
	maxPlaces = 64
)

// Guard contains the panics of one input. It is safe for concurrent use. A nil *Guard also
// contains panics, but neither counts nor logs them.
type Guard struct {
	input string
	log   *slog.Logger

	mu     sync.Mutex
	state  State
	places map[string]*place // by Error.Place; at most maxPlaces, and one under the key ""
}

// place is the state of one place that panicked.
type place struct {
	logged time.Time
	since  uint64 // panics since logged
}

// State describes the panics that a guard has contained so far.
type State struct {
	Count       uint64    // of panics since the guard was made
	Last        *Error    // the newest one; nil if there was none
	First, Time time.Time // of the first and of the newest panic
}

// New makes the guard of an input. The name appears in logs, as in "probe host".
func New(input string, log *slog.Logger) *Guard {
	return &Guard{input: input, log: log, places: map[string]*place{}}
}

// Do calls f and returns its error, or an [*Error] if f panics. Deferred calls of f run
// before Do returns, so f must release its resources by defer.
func (g *Guard) Do(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil { // panic(nil) arrives as a *runtime.PanicNilError
			err = g.contain(v)
		}
	}()
	return f()
}

// contain describes, counts and logs the panic with value v.
func (g *Guard) contain(v any) *Error {
	if g == nil {
		return newError("the work", v)
	}
	e := newError(g.input, v)
	g.note(e)
	return e
}

// Run is Do for work that returns no error. It returns nil unless f panicked.
func (g *Guard) Run(f func()) error {
	return g.Do(func() error { f(); return nil })
}

// Count returns the number of panics since the guard was made.
func (g *Guard) Count() uint64 { return g.State().Count }

// State returns the panics contained so far.
func (g *Guard) State() State {
	if g == nil {
		return State{}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state
}

// note counts a panic, and logs it unless the same place was logged within logAgain.
func (g *Guard) note(e *Error) {
	stack, again := g.count(e, time.Now())
	switch {
	case stack:
		g.log.Error("An input panicked", "input", g.input, "err", e.Error(), "stack", e.Stack)
	case again > 0:
		g.log.Error("An input panics again and again", "input", g.input, "err", e.Error(), "panics", again)
	}
}

// count counts a panic. stack says to log the stack, because the place is new; otherwise again is
// the number of panics to log, 0 for none.
func (g *Guard) count(e *Error, now time.Time) (stack bool, again uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state.Count == 0 {
		g.state.First = now
	}
	g.state.Count++
	g.state.Last, g.state.Time = e, now
	key := e.Place
	if g.places[key] == nil && len(g.places) >= maxPlaces {
		key = ""
	}
	p := g.places[key]
	if p == nil {
		g.places[key] = &place{logged: now}
		return true, 0
	}
	p.since++
	if now.Sub(p.logged) < logAgain {
		return false, 0
	}
	again = p.since
	p.logged, p.since = now, 0
	return false, again
}
