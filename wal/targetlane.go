package wal

import (
	"errors"

	"hwsagent/wal/queue"
)

// reach returns the progress of a lane; ok is false for the backlog if there is none.
func (t *target) reach(l queue.Lane) (r queue.Reach, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sp.Reach(l)
}

// split implements [Reader.Split].
func (t *target) split(at Mark) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone || !t.sp.Split(at) {
		return false
	}
	t.version++
	return true
}

// advance implements [Lane.Advance].
func (t *target) advance(l queue.Lane, to Mark, outcome queue.Outcome) {
	if t.settle(l, to, outcome) {
		t.store.Write(t) // the housekeeping handles an error
	}
}

// settle is advance in memory. It reports whether anything has changed.
func (t *target) settle(l queue.Lane, to Mark, outcome queue.Outcome) (changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, settle := t.sp.Last(), t.sp.SettleLast
	if l == queue.Backlog {
		at, settle = t.sp.Acked(), t.sp.Settle
	}
	if to.Commit <= at.Commit {
		return false
	}
	t.sp.Outcome.Add(outcome.AtMost(settle(to)))
	t.version++
	return true
}

// reserve implements [Lane.Reserve].
func (t *target) reserve(l queue.Lane, high Mark) error {
	t.mu.Lock()
	switch {
	case l == queue.Backlog:
		if t.sp.ReserveGap(high) {
			t.version++
		}
	case high.Commit > t.sp.High.Commit:
		t.sp.High = high
		t.version++
	}
	changed := t.version != t.written
	t.mu.Unlock()
	if !changed {
		return nil
	}
	if err := t.store.Put(t); errors.Is(err, ErrClosed) {
		return err
	}
	return nil // after an error of the disk, the housekeeping reports it and retries
}
