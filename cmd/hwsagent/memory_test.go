package main

import (
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// All the garbage that an agent may have is below its limit, and not much else.
func TestMemoryLimitLeavesRoomForGarbage(t *testing.T) {
	for needed := uint64(0); needed < 4<<30; needed += 9_999_991 {
		for _, percent := range []int{15, 20, 40, 100} {
			least := max(smallMemory, needed/100*uint64(100+percent))
			if got := memoryLimit(needed, percent); uint64(got) < least || uint64(got) > least+limitStep {
				t.Fatalf("an agent that needs %d bytes and may have %d %% of garbage has the limit %d, want about %d", needed, percent, got, least)
			}
		}
	}
}

// A large agent has as much room for garbage as one at the border, or 15 % of its memory; one that makes more garbage has more room, up to
// that border's.
func TestGarbageOfALargeAgentIsBounded(t *testing.T) {
	for needed, want := range map[uint64]struct{ quiet, busy, rapid int }{
		0: {20, 40, 100}, 50 << 20: {20, 40, 100}, 100 << 20: {20, 40, 51}, mostNeeded / 2: {20, 40, 40}, 200 << 20: {20, 25, 25}, mostNeeded: {20, 20, 20},
		mostNeeded + 1: {19, 19, 19}, 300 << 20: {17, 17, 17}, 340 << 20: {15, 15, 15}, 400 << 20: {15, 15, 15}, 10 << 30: {15, 15, 15}, math.MaxUint64: {15, 15, 15},
	} {
		got := want
		got.quiet, got.busy, got.rapid = garbagePercent(needed, 1), garbagePercent(needed, busyTimes), garbagePercent(needed, rapidTimes)
		if got != want {
			t.Errorf("an agent that needs %d bytes may have %+v %% of garbage, want %+v", needed, got, want)
		}
	}
}

// An agent gets more room for garbage while it makes much, and none because of one collection. Those of its start give more room only if
// they come within a second of each other.
func TestCollectionsInQuickSuccession(t *testing.T) {
	began := time.Now()
	p := pace{from: began.Add(30 * time.Second)}
	for _, c := range []struct {
		after time.Duration
		want  int
	}{
		{100 * time.Millisecond, 1}, {time.Second, rapidTimes}, {2 * time.Second, 1}, {15 * time.Second, 1}, {45 * time.Second, 1}, {59 * time.Second, busyTimes},
		{90 * time.Second, busyTimes}, {150 * time.Second, busyTimes}, {211 * time.Second, 1}, {240 * time.Second, 1}, {241 * time.Second, busyTimes},
		{241500 * time.Millisecond, rapidTimes}, {243 * time.Second, busyTimes}, {304 * time.Second, 1},
	} {
		if got := p.factor(began.Add(c.after)); got != c.want {
			t.Errorf("after the collection at %s the factor is %d", c.after, got)
		}
	}
}

func TestNeededMemoryCountsWhatLives(t *testing.T) {
	runtime.GC()
	before := neededMemory()
	const size = 64 << 20
	held := make([]byte, size)
	runtime.GC()
	if grown := neededMemory() - before; grown < size/2 || grown > 2*size {
		t.Errorf("with %d bytes more the need grew by %d", size, grown)
	}
	runtime.KeepAlive(held)
}

// The function collects garbage itself, so each collection ends while the function runs.
func TestAfterCollectionsCallsForACollectionDuringTheCall(t *testing.T) {
	const calls = 3
	var called atomic.Int32
	done := make(chan struct{})
	afterCollections(func() {
		switch n := called.Add(1); {
		case n < calls:
			runtime.GC()
		case n == calls:
			close(done)
		}
	})
	runtime.GC()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("%d collections caused %d calls", calls, called.Load())
	}
}
