package kubernetes

import (
	"fmt"
	"reflect"
)

// Bounds of what is kept of one resource in one namespace, or in all.
const (
	maxObjects = 100_000
	maxBytes   = 256 << 20
)

// room counts what is kept of a resource. It belongs to one goroutine.
type room struct {
	of             string
	objects, bytes int
}

func newRoom(of string) *room { return &room{of: of} }

// take makes room for an object.
func (r *room) take(o object) error {
	r.objects++
	return r.grow(o)
}

// grow makes room for another state of an object. The former one counts until the next list.
func (r *room) grow(o object) error {
	r.bytes += weigh(reflect.ValueOf(o))
	if r.objects > maxObjects || r.bytes > maxBytes {
		return &tooMuchError{r.of}
	}
	return nil
}

// free gives the room of an object back. Its text counts until the next list.
func (r *room) free() { r.objects-- }

// tooMuchError says that a bound is reached.
type tooMuchError struct{ of string }

func (e *tooMuchError) Error() string {
	return fmt.Sprintf("there are more than %d %s, or they have more than %d MiB of text: choose fewer by namespaces or selectors", maxObjects, e.of, maxBytes>>20)
}
