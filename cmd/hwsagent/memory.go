package main

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

const (
	// gcPercent is how much garbage may be beside what lives, unless the environment variable
	// GOGC says otherwise. What lives is what is known of each series; a sample leaves no
	// garbage on its way. So collecting early costs little time and saves much memory.
	gcPercent = 20

	// smallMemory is Go's memory limit for a small agent, in bytes; the program's own pages are not part of it.
	// Near the limit the runtime returns free memory to the system and collects sooner, before it takes more.
	smallMemory = 204 << 20
)

// boundMemory sets gcPercent and, while the agent is small, the memory limit. The environment variable GOGC turns
// both off, GOMEMLIMIT the limit.
func boundMemory() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(gcPercent)
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetMemoryLimit(smallMemory)
	var small atomic.Bool
	small.Store(true)
	afterCollections(func() {
		limit := memoryLimit(neededMemory())
		if small.Swap(limit == smallMemory) != (limit == smallMemory) {
			debug.SetMemoryLimit(limit)
		}
	})
}

// memoryLimit is the limit for an agent that needs this many bytes. Where less than a tenth of that would be left for
// garbage, there is no limit: the collector would take too much time.
func memoryLimit(needed uint64) int64 {
	if needed > smallMemory/11*10 {
		return math.MaxInt64
	}
	return smallMemory
}

// neededMemory is the heap that was alive at the end of the last collection plus all memory of the runtime that is not
// heap, in bytes.
func neededMemory() uint64 {
	s := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(s)
	return s[0].Value.Uint64() + s[1].Value.Uint64() - s[2].Value.Uint64() - s[3].Value.Uint64() - s[4].Value.Uint64()
}

// afterCollections calls f after each garbage collection, in a goroutine of the runtime: it is the cleanup of an object
// to which nothing refers, and makes another such object.
func afterCollections(f func()) {
	runtime.AddCleanup(new([16]byte), func(f func()) {
		f()
		afterCollections(f)
	}, f)
}
