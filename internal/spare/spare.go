// Package spare keeps large buffers, and other values that are costly to make, for their next use.
//
// [sync.Pool] alone keeps one value for each processor, and drops all that two collections of garbage find unused. A buffer
// of a megabyte that is used once a second was in memory several times, and was often made anew, which brought the next
// collection nearer.
package spare

import "sync"

// kept is how many unused things a Stack keeps whatever the garbage collector does. One is for work that is done by one
// goroutine at a time; the second for a moment at which two of them meet.
const kept = 2

// Stack keeps unused things: a few for good, and the others in a [sync.Pool], so that the memory of a burst is released.
// The zero value is ready, and safe for concurrent use.
type Stack[T any] struct {
	mu   sync.Mutex
	free [kept]*T
	n    int       // of free
	more sync.Pool // of *T
}

// Take returns an unused thing, the last one put back if possible; nil if there is none.
func (s *Stack[T]) Take() *T {
	s.mu.Lock()
	if s.n > 0 {
		s.n--
		thing := s.free[s.n]
		s.free[s.n] = nil
		s.mu.Unlock()
		return thing
	}
	s.mu.Unlock()
	thing, _ := s.more.Get().(*T)
	return thing
}

// Put keeps a thing, which the caller must not use any more.
func (s *Stack[T]) Put(thing *T) {
	s.mu.Lock()
	if s.n < kept {
		s.free[s.n] = thing
		s.n++
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	s.more.Put(thing)
}
