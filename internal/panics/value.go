package panics

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"hwsagent/internal/text"
)

const (
	// maxValue bounds a described value, in bytes.
	maxValue = 160
	// hidden replaces the rest of a text that is cut.
	hidden = "…"
)

// describe returns a readable form of a panic's value. Errors of the runtime ("index out of range
// [5] with length 3") are shown, as they hold no data. Of other values, which may hold data or a
// secret, only the type is shown.
func describe(v any) string {
	if err, ok := v.(runtime.Error); ok {
		return cut(text.OneLine(err.Error()))
	}
	return cut(fmt.Sprintf("a value of type %T", v))
}

// cut bounds s to maxValue bytes, at a rune boundary.
func cut(s string) string {
	if len(s) <= maxValue {
		return s
	}
	s = s[:maxValue-len(hidden)]
	return strings.ToValidUTF8(s, "") + hidden
}

// As returns the panic that an error wraps, or nil.
func As(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}
