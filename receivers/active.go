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
	mu     sync.Mutex
	limit  int
	series map[uint64]active // seen in this generation or in the one before
	weight int               // of all together
	now    uint32            // the generation, from 1 on
	end    time.Time         // of the generation
}

// active is a series that counts. There may be very many, so it takes only 8 bytes.
type active struct {
	weight uint16
	seen   uint16 // the last generation with a sample; the lowest bits tell the present one from the one before
	by     uint32 // the request that has made it active, if no other has had it since; otherwise 0
}

func newActiveSeries(limit int) *activeSeries {
	return &activeSeries{limit: limit, series: map[uint64]active{}}
}

// generation returns the number of the generation at now.
func (a *activeSeries) generation(now time.Time) uint32 {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turn(now)
	return a.now
}

// turn begins a generation if it is time. a.mu must be held.
func (a *activeSeries) turn(now time.Time) {
	if now.Before(a.end) {
		return
	}
	before := uint16(a.now)               // #nosec G115 -- see active.seen
	pause := now.Sub(a.end) >= generation // then the generation before has no samples
	left := make(map[uint64]active, len(a.series))
	a.weight = 0
	for hash, s := range a.series {
		if s.seen == before && !pause {
			left[hash] = s
			a.weight += int(s.weight)
		}
	}
	a.series, a.now, a.end = left, a.now+1, now.Add(generation)
}

// verdict is the answer of [activeSeries.admit].
type verdict int

const (
	beyond verdict = iota // the limit is reached
	fresh                 // it is new, and counts unless its request is not stored
	unsure                // it counts already, but may be forgotten with the request that made it active
	firm                  // it counts in this generation whatever becomes of any request
)

// admit returns whether a series, with that many bytes of labels, may have a sample at now. by is the number of the
// request, not 0.
func (a *activeSeries) admit(hash uint64, bytes uint64, now time.Time, by uint32) verdict {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turn(now)
	s, known := a.series[hash]
	if !known {
		s = active{weight: uint16(min(1+bytes/heavy, 1<<16-1)), by: by} // #nosec G115 -- just bounded
		if a.weight+int(s.weight) > a.limit {
			return beyond
		}
		a.weight += int(s.weight)
	}
	if s.by != by {
		s.by = 0
	}
	s.seen = uint16(a.now) // #nosec G115 -- see active.seen
	a.series[hash] = s
	switch {
	case !known:
		return fresh
	case s.by != 0:
		return unsure
	}
	return firm
}

// forget undoes admit for new series of a request that is not stored. A series that another request has had meanwhile
// still counts, because that one may have stored it.
func (a *activeSeries) forget(fresh []uint64, by uint32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, hash := range fresh {
		if s := a.series[hash]; s.by == by {
			a.weight -= int(s.weight)
			delete(a.series, hash)
		}
	}
}

func (a *activeSeries) size() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.series)
}
