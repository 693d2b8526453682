package receivers

import (
	"sync"
	"time"
)

// generation is how long a series counts as active after its last sample, at least; at
// most it is twice that.
const generation = time.Hour

// heavy is how many bytes of labels a series may have for each time that it counts.
const heavy = 2 << 10

// activeSeries bounds how many series a receiver lets into the log, which keeps each in
// memory for an hour. One with long labels counts more than once, so that they bound
// memory, too. A series is known by the hash of its labels: two that share one count as one,
// which does no harm.
type activeSeries struct {
	mu          sync.Mutex
	limit       int
	young, old  map[uint64]int // seen in this generation; in the one before and not since: how often it counts
	weight      int            // of both together
	youngestEnd time.Time
}

func newActiveSeries(limit int) *activeSeries {
	return &activeSeries{limit: limit, young: map[uint64]int{}, old: map[uint64]int{}}
}

// admit reports whether a series, with so many bytes of labels, may have a sample at now, and
// whether it is a new one.
func (a *activeSeries) admit(hash uint64, bytes uint64, now time.Time) (ok, fresh bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !now.Before(a.youngestEnd) {
		for _, weight := range a.old {
			a.weight -= weight
		}
		// After a pause of more than a generation both are out of date.
		if a.old = a.young; now.Sub(a.youngestEnd) >= generation {
			a.old, a.weight = map[uint64]int{}, 0
		}
		a.young, a.youngestEnd = map[uint64]int{}, now.Add(generation)
	}
	if _, ok := a.young[hash]; ok {
		return true, false
	}
	if weight, known := a.old[hash]; known {
		delete(a.old, hash)
		a.young[hash] = weight
		return true, false
	}
	weight := 1 + int(bytes/heavy) // #nosec G115 -- labels are bounded
	if a.weight+weight > a.limit {
		return false, false
	}
	a.young[hash] = weight
	a.weight += weight
	return true, true
}

// forget takes back what admit let in, of a request that is not stored.
func (a *activeSeries) forget(fresh []uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, hash := range fresh {
		a.weight -= a.young[hash] + a.old[hash] // one of the two, or none
		delete(a.young, hash)
		delete(a.old, hash)
	}
}

func (a *activeSeries) size() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.young) + len(a.old)
}
