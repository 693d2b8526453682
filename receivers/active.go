package receivers

import (
	"sync"
	"time"
)

// generation is how long a series counts as active after its last sample, at least; at
// most it is twice that.
const generation = time.Hour

// activeSeries bounds how many series a receiver lets into the log, which keeps each in
// memory for an hour. A series is known by the hash of its labels: two that share one
// count as one, which does no harm.
type activeSeries struct {
	mu          sync.Mutex
	limit       int
	young, old  map[uint64]struct{} // seen in this generation; in the one before and not since
	youngestEnd time.Time
}

func newActiveSeries(limit int) *activeSeries {
	return &activeSeries{limit: limit, young: map[uint64]struct{}{}, old: map[uint64]struct{}{}}
}

// admit reports whether a series may have a sample at now, and whether it is a new one.
func (a *activeSeries) admit(hash uint64, now time.Time) (ok, fresh bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !now.Before(a.youngestEnd) {
		// After a pause of more than a generation both are out of date.
		if a.old = a.young; now.Sub(a.youngestEnd) >= generation {
			a.old = map[uint64]struct{}{}
		}
		a.young, a.youngestEnd = map[uint64]struct{}{}, now.Add(generation)
	}
	if _, ok := a.young[hash]; ok {
		return true, false
	}
	_, known := a.old[hash]
	if !known && len(a.young)+len(a.old) >= a.limit {
		return false, false
	}
	delete(a.old, hash)
	a.young[hash] = struct{}{}
	return true, !known
}

// forget takes back what admit let in, of a request that is not stored.
func (a *activeSeries) forget(fresh []uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, hash := range fresh {
		delete(a.young, hash)
		delete(a.old, hash)
	}
}

func (a *activeSeries) size() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.young) + len(a.old)
}
