// Package panics keeps a panic from costing more than the work it happened in.
//
// Every input (a probe, a receiver, a scrape job) runs its work through a [Guard] of its
// own. A panic in that work, in our code or in a library, becomes an [Error] which the caller
// handles as it handles any other error: the round fails, the request is refused. The guard
// counts the panic, and logs it with its stack when that place panics for the first time.
//
// A guard contains panics of the goroutine that calls [Guard.Do] only. A goroutine that the
// work starts needs a Do of its own. Go gives no means against a fatal error of the runtime: a
// concurrent write to a map, a stack that overflows, memory that has run out.
package panics
