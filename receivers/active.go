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
	young, old  map[uint64]active // series seen in this generation; and those seen only in the one before
	weight      int               // of both together
	youngestEnd time.Time
}

// active is a series that counts.
type active struct {
	weight int32
	by     uint32 // the request that has made it active, if no other has had it since; otherwise 0
}

func newActiveSeries(limit int) *activeSeries {
	return &activeSeries{limit: limit, young: map[uint64]active{}, old: map[uint64]active{}}
}

// admit reports whether a series, with that many bytes of labels, may have a sample at now, and whether it is new. by is
// the number of the request, not 0.
func (a *activeSeries) admit(hash uint64, bytes uint64, now time.Time, by uint32) (ok, fresh bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !now.Before(a.youngestEnd) {
		for _, s := range a.old {
			a.weight -= int(s.weight)
		}
		// After a pause of more than a generation both are outdated.
		if a.old = a.young; now.Sub(a.youngestEnd) >= generation {
			a.old, a.weight = map[uint64]active{}, 0
		}
		a.young, a.youngestEnd = map[uint64]active{}, now.Add(generation)
	}
	s, known := a.young[hash]
	if !known {
		s, known = a.old[hash]
		delete(a.old, hash)
	}
	if known {
		if s.by != by {
			s.by = 0
		}
		a.young[hash] = s
		return true, false
	}
	weight := 1 + int(bytes/heavy) // #nosec G115 -- labels are bounded
	if a.weight+weight > a.limit {
		return false, false
	}
	a.young[hash] = active{int32(weight), by} // #nosec G115 -- as above
	a.weight += weight
	return true, true
}

// forget undoes admit for new series of a request that is not stored. A series that another request has had meanwhile
// still counts, because that one may have stored it.
func (a *activeSeries) forget(fresh []uint64, by uint32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, hash := range fresh {
		s := a.young[hash]
		if old, ok := a.old[hash]; ok {
			s = old
		}
		if s.by != by {
			continue
		}
		a.weight -= int(s.weight)
		delete(a.young, hash)
		delete(a.old, hash)
	}
}

func (a *activeSeries) size() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.young) + len(a.old)
}
