//go:build linux

package crashlab

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// noise measures how late this process wakes up from a sleep: the delay that the shared machine adds to every step of a
// sample's way.
type noise struct {
	mu   sync.Mutex
	late []lag
}

func newNoise(t *testing.T) *noise {
	n := &noise{}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(pace)
		defer ticker.Stop()
		for last := time.Now(); ; {
			select {
			case <-stop:
				return
			case <-ticker.C:
			}
			now := time.Now()
			n.mu.Lock()
			n.late = append(n.late, lag{now, max(0, now.Sub(last)-pace)})
			n.mu.Unlock()
			last = now
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-done
	})
	return n
}

// between returns the 99th percentile of the lateness in that stretch of time, and the worst.
func (n *noise) between(from, to time.Time) (p99, worst time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return ages(n.late, from, to)
}

// ages returns the 99th percentile and the greatest of what was noted in that stretch of time.
func ages(lags []lag, from, to time.Time) (p99, worst time.Duration) {
	var all []time.Duration
	for _, l := range lags {
		if l.at.After(from) && l.at.Before(to) {
			all = append(all, l.age)
		}
	}
	if len(all) == 0 {
		return 0, 0
	}
	slices.Sort(all)
	return all[(len(all)-1)*99/100], all[len(all)-1]
}
