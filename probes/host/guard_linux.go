package host

import (
	"context"
	"fmt"
	"time"

	"hwsagent/internal/panics"
)

// guard performs reads that may hang, each in its own goroutine, all concurrently and under one deadline. It skips a
// hanging read in later rounds until its goroutine returns. It must not be used by two goroutines at a time.
type guard[T any] struct {
	limit  time.Duration
	panics *panics.Guard // contains the panics of each read

	// flying holds the reads that have not returned, by key. Their channels have room for the answer, so that a late
	// goroutine ends by itself.
	flying map[string]chan outcome[T]
}

// outcome is the result of one read.
type outcome[T any] struct {
	value T
	err   error // stuckError, why the round ended, or a panic
}

// stuckError means that a read did not return in time, now or in an earlier round.
type stuckError struct{ limit time.Duration }

func (e stuckError) Error() string { return fmt.Sprintf("no answer within %v", e.limit) }

// all starts read for each key and returns the outcomes in the order of the keys, which must differ. read runs
// concurrently with itself and, if it hangs, with later code: it must not touch anything that it did not create.
func (g *guard[T]) all(ctx context.Context, keys []string, read func(key string) T) []outcome[T] {
	if g.flying == nil {
		g.flying = make(map[string]chan outcome[T])
	}
	for key, late := range g.flying {
		select {
		case <-late: // its result is outdated
			delete(g.flying, key)
		default:
		}
	}
	out := make([]outcome[T], len(keys))
	started := make([]chan outcome[T], len(keys))
	for i, key := range keys {
		if _, hangs := g.flying[key]; hangs {
			out[i].err = stuckError{g.limit}
			continue
		}
		answer := make(chan outcome[T], 1)
		g.flying[key], started[i] = answer, answer
		go func() {
			var o outcome[T]
			o.err = g.panics.Run(func() { o.value = read(key) })
			answer <- o
		}()
	}
	deadline := time.NewTimer(g.limit)
	defer deadline.Stop()
	var late error
	for i, answer := range started {
		if answer == nil {
			continue
		}
		if late == nil {
			select {
			case out[i] = <-answer:
				delete(g.flying, keys[i])
				continue
			case <-deadline.C:
				late = stuckError{g.limit}
			case <-ctx.Done():
				late = context.Cause(ctx)
			}
		}
		// Time is up: take results that are already there.
		select {
		case out[i] = <-answer:
			delete(g.flying, keys[i])
		default:
			out[i].err = late
		}
	}
	return out
}
