package panics

import (
	"errors"
	"fmt"
	"runtime"

	"hwsagent/internal/text"
)

// maxValue bounds a described value, in bytes.
const maxValue = 160

// describe returns a readable form of a panic's value. Errors of the runtime ("index out of range
// [5] with length 3") are shown, as they hold no data. Of other values, which may hold data or a
// secret, only the type is shown.
func describe(v any) string {
	if err, ok := v.(runtime.Error); ok {
		return text.Bound(text.OneLine(err.Error()), maxValue)
	}
	return text.Bound(fmt.Sprintf("a value of type %T", v), maxValue)
}

// As returns the panic that an error wraps, or nil.
func As(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}
