package panics

import (
	"fmt"
	"runtime"
	"strings"
)

const (
	module = "hwsagent/"
	// self is how the functions of a guard begin.
	self = module + "inputs/panics.(*Guard)."
	// maxFrames bounds the stack that an error holds.
	maxFrames = 64
)

// Error is a panic that a [Guard] contained.
type Error struct {
	// Input is whose work panicked, as in "probe host".
	Input string
	// Value is the panic's value for people: one line of at most maxValue bytes, without
	// what may be data of others or a secret. See the function describe.
	Value string
	// Place is where it panicked, as file:line below its module, and, if that is in a
	// library, the line of ours that called it.
	Place string
	// Stack is the calls that led there, innermost first, of at most maxFrames. It has no
	// arguments, as these may hold data.
	Stack string
}

// Error is one line: what panicked, where, and what that costs.
func (e *Error) Error() string {
	return fmt.Sprintf("%s panicked: %s, at %s; at most the round or request that it was in is lost. This is a bug: please report it with the stack from the agent's log", e.Input, e.Value, e.Place)
}

// newError describes the panic with value v. It must be called, directly or not, by the
// deferred function that recovered it: the stack is then still there.
func newError(input string, v any) *Error {
	e := &Error{Input: input, Value: describe(v)}
	e.Place, e.Stack = trace()
	return e
}

// trace describes the stack of the panic that is being recovered.
func trace() (where, stack string) {
	pcs := make([]uintptr, maxFrames)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	var (
		b             strings.Builder
		inner, caller string // where it panicked, and our innermost line
		panicking     bool   // the frames of the recovery are passed
	)
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if f.Function == "" {
			continue
		}
		if !panicking && f.Function == "runtime.gopanic" {
			panicking = true // work that panics again while it unwinds has a second one: of the earlier panic
			continue
		}
		if !panicking {
			continue
		}
		at := position(f)
		fmt.Fprintf(&b, "%s\n\t%s\n", f.Function, at)
		if strings.HasPrefix(f.Function, "runtime.") {
			continue // as runtime.panicIndex and runtime.sigpanic
		}
		if inner == "" {
			inner = at
		}
		if caller == "" && ours(f.Function) {
			caller = at
		}
	}
	switch {
	case inner == "":
		return "an unknown place", b.String()
	case caller == "" || caller == inner:
		return inner, b.String()
	}
	return inner + " (called at " + caller + ")", b.String()
}

// ours reports whether a function is of this module, but not of a guard.
func ours(function string) bool {
	return (strings.HasPrefix(function, module) || strings.HasPrefix(function, "main.")) && !strings.HasPrefix(function, self)
}

// position is the file and line of a frame, as "receivers/gate.go:12" or
// "github.com/prometheus/procfs@v0.23.0/mdstat.go:34". It does not depend on where the program
// was built. The function's name would not do: of one that is inlined into another package it
// names the other package.
func position(f runtime.Frame) string {
	file := strings.ReplaceAll(f.File, `\`, "/")
	for _, root := range []string{moduleRoot(), "/pkg/mod/", "/src/"} {
		if i := strings.LastIndex(file, root); i >= 0 {
			file = file[i+len(root):]
			break
		}
	}
	return fmt.Sprintf("%s:%d", file, f.Line)
}

// moduleRoot is how the paths of this module's files begin.
func moduleRoot() string {
	_, file, _, _ := runtime.Caller(0)
	return strings.TrimSuffix(strings.ReplaceAll(file, `\`, "/"), "inputs/panics/error.go")
}
