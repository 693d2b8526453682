// Package panics limits the cost of a panic to the work in which it happened.
//
// Every input (a probe, a receiver, a scrape job) runs its work through a [Guard] of its
// own. A panic in that work, in our code or in a library, becomes an [Error] that the caller
// handles like any other error: the round fails, the request is refused. The guard counts
// the panic, and logs it with its stack when that place panics for the first time.
//
// A guard contains only panics of the goroutine that calls [Guard.Do]. A goroutine started by
// the work needs a Do of its own. Go cannot recover from a fatal error of the runtime: a
// concurrent write to a map, a stack overflow, memory exhaustion.
package panics
