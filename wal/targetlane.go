package wal

import (
	"bytes"
	"fmt"
)

// laneKind distinguishes the two lanes of a target.
type laneKind uint8

const (
	live    laneKind = iota // after the last sample with a final outcome
	backlog                 // the oldest gap

	numLanes
)

// reach returns the progress of a lane; ok is false for the backlog if there is none.
func (t *target) reach(l laneKind) (r Reach, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l == live {
		return Reach{Acked: t.sp.Last(), High: t.sp.High, Shards: t.sp.Shards}, true
	}
	if r.Acked, r.End, ok = t.sp.gap(); ok {
		r.High, r.Shards, r.Missed = t.sp.Done[0].High, t.sp.Done[0].Shards, t.sp.missed()
	}
	return r, ok
}

// split implements [Reader.Split].
func (t *target) split(at Mark) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone || !t.sp.split(at) {
		return false
	}
	clear(t.overtaken[live][:])
	t.version++
	return true
}

// advance implements [Lane.Advance].
func (t *target) advance(l laneKind, to Mark, outcome Outcome) {
	if t.settle(l, to, outcome) {
		t.store.Write(t) // the housekeeping handles an error
	}
}

// settle is advance in memory. It reports whether anything has changed.
func (t *target) settle(l laneKind, to Mark, outcome Outcome) (changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, settle := t.sp.Last(), t.sp.settleLast
	if l == backlog {
		at, settle = t.sp.Acked(), t.sp.settle
	}
	moves := to.Commit > at.Commit
	added, told := settle(to), outcome.Sum()
	// Samples in flight may have been dropped and counted so. Their true outcome is known now
	// and replaces the drop.
	known, found := told-min(added, told), false
	overtaken := &t.overtaken[l]
	for why, n := range overtaken {
		n = min(n, known)
		known -= n
		overtaken[why] -= n
		t.sp.Outcome.Dropped[why] -= n
		found = found || n > 0
	}
	if !moves && !found {
		return false
	}
	t.sp.Outcome.Add(outcome)
	if moves {
		clear(overtaken[:]) // outcomes come in order, so none of earlier samples can follow
	}
	t.version++
	return true
}

// reserve implements [Lane.Reserve].
func (t *target) reserve(l laneKind, high Mark) error {
	t.mu.Lock()
	if high.Commit <= t.high[l].Commit {
		t.mu.Unlock()
		return nil
	}
	switch {
	case l == backlog:
		if t.sp.reserveGap(high) {
			t.version++
		}
	case high.Commit > t.sp.High.Commit:
		t.sp.High = high
		t.version++
	}
	t.mu.Unlock()
	if err := t.save(); err != nil && t.store.RefusedFor() < reservePatience {
		return err
	}
	return nil // after an error, the housekeeping reports it and retries
}

// setShards implements [Lane.SetShards].
func (t *target) setShards(l laneKind, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	shards := &t.sp.Shards
	if l == backlog {
		if _, _, ok := t.sp.gap(); !ok {
			return
		}
		shards = &t.sp.Done[0].Shards
	}
	if *shards != n {
		*shards = n
		t.version++
	}
}

// rewound clears overtaken: outcomes of entries read before will not be reported.
func (t *target) rewound(l laneKind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.overtaken[l][:])
}

// setControl implements [Reader.SetControl].
func (t *target) setControl(b []byte) error {
	if len(b) > MaxControl {
		return fmt.Errorf("keep %d bytes beside the savepoint of target %q: %d at most", len(b), t.name, MaxControl)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !bytes.Equal(t.sp.Control, b) {
		t.sp.Control = bytes.Clone(b)
		t.version++
	}
	return nil
}
