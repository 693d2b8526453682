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

	// smallMemory is how many bytes a small agent takes from the system, the program's pages aside:
	// the memory that a burst left free goes back, and the collector runs sooner, before it takes more.
	smallMemory = 204 << 20
)

// boundMemory sets how much garbage may be, and keeps the limit of memory up to date, unless the environment
// variables GOGC and GOMEMLIMIT say otherwise.
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

// memoryLimit is the limit for an agent that needs so many bytes. With less than a tenth of room for garbage the
// collector would take too much time: an agent that needs so much has no limit.
func memoryLimit(needed uint64) int64 {
	if needed > smallMemory/11*10 {
		return math.MaxInt64
	}
	return smallMemory
}

// neededMemory is what lived at the end of the last collection, and all that is no heap, in bytes.
func neededMemory() uint64 {
	s := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(s)
	return s[0].Value.Uint64() + s[1].Value.Uint64() - s[2].Value.Uint64() - s[3].Value.Uint64() - s[4].Value.Uint64()
}

// afterCollections calls f after each collection: an object that nothing refers to is collected by each.
func afterCollections(f func()) {
	runtime.AddCleanup(new([16]byte), func(f func()) {
		f()
		afterCollections(f)
	}, f)
}
