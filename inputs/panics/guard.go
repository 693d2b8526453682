package panics

import (
	"log/slog"
	"sync"
	"time"
)

const (
	// logAgain is the least time between two log lines about the same place.
	logAgain = time.Hour
	// maxPlaces bounds how many places a guard tells apart. All further places count as one.
	maxPlaces = 64
)

// Guard contains the panics of one input. It is safe for concurrent use. A nil *Guard contains
// panics, too, but neither counts nor logs them.
type Guard struct {
	input string
	log   *slog.Logger

	mu     sync.Mutex
	state  State
	places map[string]*place // by Error.Place; at most maxPlaces, and one of the key ""
}

// place is what a guard knows of one place that panicked.
type place struct {
	logged time.Time
	since  uint64 // panics since then
}

// State is what a guard has contained so far.
type State struct {
	Count       uint64    // of panics since the guard was made
	Last        *Error    // the newest one; nil if there was none
	First, Time time.Time // of the first and of the newest panic
}

// New makes the guard of an input. The input's name is for people, as in "probe host".
func New(input string, log *slog.Logger) *Guard {
	return &Guard{input: input, log: log, places: map[string]*place{}}
}

// Do calls f and returns its error, or an [*Error] if f panics. Deferred calls of f run
// before Do returns, so whatever f must release has to be released by defer.
func (g *Guard) Do(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil { // panic(nil) comes as a *runtime.PanicNilError
			err = g.contain(v)
		}
	}()
	return f()
}

// contain describes the panic with value v, counts and logs it.
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

// Count is the number of panics since the guard was made.
func (g *Guard) Count() uint64 { return g.State().Count }

// State is what the guard has contained so far.
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

// count counts a panic. It says whether to log the stack, because the place is new, or else
// how many panics to log, 0 for none.
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
