package receivers

import (
	"sync"
	"time"
)

// generation is how long a series counts as active after its last sample, at least; at
// most it is twice that.
const generation = time.Hour

// heavy is the number of bytes of labels for which a series counts one more time.
const heavy = 2 << 10

// activeSeries bounds how many series a receiver passes to the log, which keeps each in memory for an hour. A series
// with long labels counts more than once, so that labels bound memory, too. Series are identified by the hash of their
// labels: two with the same hash count as one, which does no harm.
type activeSeries struct {
	mu          sync.Mutex
	limit       int
	young, old  map[uint64]int // weight of series seen in this generation; and of those seen only in the one before
	weight      int            // of both together
	youngestEnd time.Time
}

func newActiveSeries(limit int) *activeSeries {
	return &activeSeries{limit: limit, young: map[uint64]int{}, old: map[uint64]int{}}
}

// admit reports whether a series, with that many bytes of labels, may have a sample at now, and whether it is new.
func (a *activeSeries) admit(hash uint64, bytes uint64, now time.Time) (ok, fresh bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !now.Before(a.youngestEnd) {
		for _, weight := range a.old {
			a.weight -= weight
		}
		// After a pause of more than a generation both are outdated.
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

// forget undoes admit for new series of a request that is not stored.
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
