package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

const (
	// gcPercent is how much garbage the heap may have, in percent of the live heap, unless the environment variable
	// GOGC is set. The live heap is mostly the agent's data about each series; samples make no garbage. So
	// collecting early costs little time and saves much memory.
	gcPercent = 20

	// busyTimes multiplies gcPercent while collections follow each other within often, and until one comes seldom after the one
	// before: receivers, above all, make garbage. Each collection looks at all that is alive, which was a tenth of the processor time
	// of an agent that gets 10,000 samples a second by OTLP. A busy agent has no more bytes for garbage than a large one.
	busyTimes = 2
	often     = 15 * time.Second
	seldom    = time.Minute

	// rapidTimes multiplies gcPercent after a collection that came within rapid of the one before. Collections follow each other like
	// this at the start: little is alive, and each new series and connection makes garbage. Among 200 peers 73 collections came before
	// the first round of probes ended, and took 31 % of the processor time. With this factor 20 come.
	rapidTimes = 5
	rapid      = time.Second

	// leastPercent is the lower bound of gcPercent for a large agent. Above mostNeeded the bytes for garbage no longer
	// grow, until they are this part of the heap. With less room the collector takes more processor time than the memory is worth.
	leastPercent = 15
	mostNeeded   = 256 << 20

	// smallMemory is the least memory limit for Go, in bytes; the program's own pages are not part of it.
	// Near the limit the runtime returns free memory to the system and collects sooner, before it takes more.
	smallMemory = 204 << 20

	// limitStep divides each limit above smallMemory, so that the limit seldom changes.
	limitStep = 4 << 20
)

// boundMemory bounds the garbage in the heap and, while the agent is small, sets the memory limit. The environment
// variable GOGC switches both off, GOMEMLIMIT only the limit.
func boundMemory() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(gcPercent)
	limited := os.Getenv("GOMEMLIMIT") == ""
	if limited {
		debug.SetMemoryLimit(smallMemory)
	}
	var mu sync.Mutex // two collections that end close together call the function below at the same time
	lastLimit, lastPercent := int64(smallMemory), gcPercent
	collections := pace{from: time.Now().Add(2 * startTakes)}
	afterCollections(func() {
		mu.Lock()
		defer mu.Unlock()
		needed := neededMemory()
		percent := garbagePercent(needed, collections.factor(time.Now()))
		if percent != lastPercent {
			debug.SetGCPercent(percent)
			lastPercent = percent
		}
		if limit := memoryLimit(needed, percent); limited && limit != lastLimit {
			debug.SetMemoryLimit(limit)
			lastLimit = limit
		}
	})
}

// pace says how quickly collections follow each other.
type pace struct {
	from  time.Time // the start's collections before do not make the agent busy
	last  time.Time
	quick bool
}

// factor is called after each collection. It returns the factor of gcPercent until the next one.
func (p *pace) factor(now time.Time) int {
	gap := now.Sub(p.last)
	p.last = now
	switch {
	case now.Before(p.from), gap > seldom:
		p.quick = false
	case gap < often:
		p.quick = true
	}
	switch {
	case gap < rapid:
		return rapidTimes
	case p.quick:
		return busyTimes
	}
	return 1
}

// startTakes is how long after the start its garbage is released: until then the agent reads its configuration and the log, and most
// inputs have their first round. Afterwards so little garbage arises that the next collection may be minutes away.
const startTakes = 15 * time.Second

// releaseStart returns the memory of the start to the system once, unless the returned function is called before.
func releaseStart() (stop func()) {
	timer := time.AfterFunc(startTakes, debug.FreeOSMemory)
	return func() { timer.Stop() }
}

// garbagePercent returns the percentage of garbage for an agent that needs this many bytes: gcPercent times factor, within the bounds of
// a large agent.
func garbagePercent(needed uint64, factor int) int {
	most, least := uint64(gcPercent*factor), uint64(leastPercent)          // #nosec G115 -- at most 100
	return int(min(most, max(least, mostNeeded*gcPercent/max(needed, 1)))) // #nosec G115 -- at most 100
}

// memoryLimit returns Go's memory limit for an agent that needs this many bytes and may have that percentage of garbage: all of it fits, and
// free memory beside it goes back to the system. With less room collections would follow each other.
func memoryLimit(needed uint64, percent int) int64 {
	limit := (needed/100*uint64(100+percent) + limitStep - 1) / limitStep * limitStep // #nosec G115 -- at most 200
	return int64(max(limit, smallMemory))                                             // #nosec G115 -- far below 2^63
}

// neededMemory returns the heap that was alive at the end of the last collection plus the runtime's memory outside the
// heap, in bytes.
func neededMemory() uint64 {
	s := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(s)
	return s[0].Value.Uint64() + s[1].Value.Uint64() - s[2].Value.Uint64() - s[3].Value.Uint64() - s[4].Value.Uint64()
}

// afterCollections calls f after each garbage collection, in a goroutine of the runtime: f is the cleanup of an object
// that is garbage from the start. The next such object is made before f runs, so that a collection that ends while f
// runs calls f as well, possibly at the same time.
func afterCollections(f func()) {
	runtime.AddCleanup(new([16]byte), func(f func()) {
		afterCollections(f)
		f()
	}, f)
}
