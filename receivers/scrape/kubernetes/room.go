package kubernetes

import (
	"fmt"
	"reflect"
)

// Limits for the kept objects of one resource in one namespace, or in all.
const (
	maxObjects = 100_000
	maxBytes   = 256 << 20
)

// room counts the kept objects of a resource. It belongs to one goroutine.
type room struct {
	of             string
	objects, bytes int
}

func newRoom(of string) *room { return &room{of: of} }

// take reserves room for an object.
func (r *room) take(o object) error {
	r.objects++
	return r.grow(o)
}

// grow reserves room for a new state of an object. The former state counts until the next list.
func (r *room) grow(o object) error {
	r.bytes += weigh(reflect.ValueOf(o))
	if r.objects > maxObjects || r.bytes > maxBytes {
		return &tooMuchError{r.of}
	}
	return nil
}

// free releases the room of an object. Its text counts until the next list.
func (r *room) free() { r.objects-- }

// tooMuchError means that a limit is exceeded.
type tooMuchError struct{ of string }

func (e *tooMuchError) Error() string {
	return fmt.Sprintf("there are more than %d %s, or they have more than %d MiB of text: choose fewer by namespaces or selectors", maxObjects, e.of, maxBytes>>20)
}
