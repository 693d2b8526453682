package panics

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
)

const (
	// here is the directory of this package in its module.
	here = "internal/panics"
	// maxFrames bounds the stack that an error holds.
	maxFrames = 64
)

// Error is a panic that a [Guard] contained.
type Error struct {
	// Input names the input whose work panicked, as in "probe host".
	Input string
	// Value describes the panic's value: one line of at most maxValue bytes, without
	// other people's data: the text of an error of the runtime, or a type.
	Value string
	// Place is where it panicked, as file:line below its module. If that is in a library, Place
	// adds our line that called the library.
	Place string
	// Stack is the call stack, innermost first, of at most maxFrames. It has no arguments, as
	// these may hold data.
	Stack string
}

// Error returns one line: what panicked, where, and the cost.
func (e *Error) Error() string {
	return fmt.Sprintf("%s panicked: %s, at %s; at most the round or request that it was in is lost. This is a bug: please report it with the stack from the agent's log", e.Input, e.Value, e.Place)
}

// newError describes the panic with value v. It must be called, directly or not, by the
// deferred function that recovered the panic, while the stack is still there.
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
		panicking     bool   // the frames of the recovery have been passed
	)
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if f.Function == "" {
			continue
		}
		if !panicking && f.Function == "runtime.gopanic" {
			panicking = true // a panic during unwinding leaves another gopanic frame further out, of the earlier panic
			continue
		}
		if !panicking {
			continue
		}
		at := position(f)
		fmt.Fprintf(&b, "%s\n\t%s\n", f.Function, at)
		if strings.HasPrefix(f.Function, "runtime.") {
			continue // such as runtime.panicIndex and runtime.sigpanic
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

// ours reports whether a function is of this module and not of a guard.
func ours(function string) bool {
	self := reflect.TypeFor[Guard]().PkgPath()
	module := strings.TrimSuffix(self, here)
	return (strings.HasPrefix(function, module) || strings.HasPrefix(function, "main.")) && !strings.HasPrefix(function, self+".(*Guard).")
}

// position returns the file and line of a frame, as "receivers/gate.go:12" or
// "github.com/prometheus/procfs@v0.23.0/mdstat.go:34". It does not depend on where the program
// was built. The function's name would not do: for a function inlined into another package it
// names that other package.
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

// moduleRoot returns the path prefix of this module's files.
func moduleRoot() string {
	_, file, _, _ := runtime.Caller(0)
	return strings.TrimSuffix(strings.ReplaceAll(file, `\`, "/"), here+"/error.go")
}
