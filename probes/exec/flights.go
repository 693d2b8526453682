package exec

import (
	"time"

	"hwsagent/internal/panics"
)

// Flights runs work, each piece under a key, that may never return, such as a command that the kernel does not release
// even when it is killed. Under a key whose work has not returned it begins no other, so that nothing piles up. It is
// for one goroutine.
type Flights[T any] struct {
	guard  *panics.Guard
	flying map[string]chan T
}

// NewFlights returns a Flights without work. The guard contains the panics of the work; it may be nil.
func NewFlights[T any](guard *panics.Guard) *Flights[T] {
	return &Flights[T]{guard: guard, flying: make(map[string]chan T)}
}

// Start begins work under the key, in a goroutine; it returns false if earlier work under the key has not returned. If
// the work panics, failed makes its result. Each successful Start must be followed by [Flights.Wait].
func (f *Flights[T]) Start(key string, work func() T, failed func(error) T) bool {
	if earlier := f.flying[key]; earlier != nil {
		select {
		case <-earlier: // its result is too late for its round
		default:
			return false
		}
	}
	done := make(chan T, 1)
	f.flying[key] = done
	go func() {
		var result T
		if err := f.guard.Run(func() { result = work() }); err != nil {
			result = failed(err)
		}
		done <- result
	}()
	return true
}

// Wait returns the result of the work begun under the key in this round; false if over fires first.
func (f *Flights[T]) Wait(key string, over <-chan time.Time) (result T, ok bool) {
	done := f.flying[key]
	select {
	case result = <-done:
	case <-over:
		select {
		case result = <-done:
		default:
			return result, false
		}
	}
	delete(f.flying, key)
	return result, true
}

// Len returns how many pieces of work have not returned.
func (f *Flights[T]) Len() int { return len(f.flying) }
