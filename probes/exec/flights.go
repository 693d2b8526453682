package exec

import (
	"time"

	"hwsagent/inputs/panics"
)

// Flights is work, each piece under a key, that may never come back: a command that the kernel does not let go of even when
// it is killed. Under a key of which the work has not come back none is begun again, so that nothing piles up. It is
// for one goroutine.
type Flights[T any] struct {
	guard  *panics.Guard
	flying map[string]chan T
}

// NewFlights makes it. The guard contains the panics of the work; it may be nil.
func NewFlights[T any](guard *panics.Guard) *Flights[T] {
	return &Flights[T]{guard: guard, flying: make(map[string]chan T)}
}

// Start begins work under the key, in a goroutine; false means that earlier work under it has not come back. If the work
// panics, failed makes its result. Each Start that succeeds is followed by [Flights.Wait].
func (f *Flights[T]) Start(key string, work func() T, failed func(error) T) bool {
	if earlier := f.flying[key]; earlier != nil {
		select {
		case <-earlier: // the result comes too late for its round
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

// Wait is the result of the work that was begun under the key in this round; false when over says something before there is one.
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

// Len is how much work has not come back.
func (f *Flights[T]) Len() int { return len(f.flying) }
