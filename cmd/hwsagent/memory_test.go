package main

import (
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

func TestMemoryLimitLeavesRoomForGarbage(t *testing.T) {
	for needed, want := range map[uint64]int64{
		0: smallMemory, 100 << 20: smallMemory, smallMemory / 11 * 10: smallMemory,
		smallMemory/11*10 + 20: smallMemory + limitStep, 195 << 20: 216 << 20, mostMemory / 11 * 10: mostMemory,
		mostMemory/11*10 + 20: math.MaxInt64, mostMemory: math.MaxInt64, 10 << 30: math.MaxInt64, math.MaxUint64 / 11: math.MaxInt64,
	} {
		if got := memoryLimit(needed); got != want {
			t.Errorf("an agent that needs %d bytes has the limit %d, want %d", needed, got, want)
		}
	}
}

// Whatever an agent needs, the limit leaves a tenth of it for garbage.
func TestMemoryLimitNeverLeavesLessThanATenth(t *testing.T) {
	for needed := uint64(1 << 20); needed < 300<<20; needed += 99_991 {
		if got := memoryLimit(needed); got < int64(needed/10*11) || got > mostMemory && got != math.MaxInt64 {
			t.Fatalf("an agent that needs %d bytes has the limit %d", needed, got)
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
