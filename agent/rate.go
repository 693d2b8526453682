package agent

import (
	"context"
	"sync"
	"time"
)

// Rates are averages over rateSpan, so that they stay steady between the rounds of probes, and updated every rateTick,
// so that they follow changes.
const (
	rateSpan = time.Minute
	rateTick = 5 * time.Second
)

// rate computes how fast a counter grows, per second, averaged over the last rateSpan.
type rate struct {
	mu   sync.Mutex
	seen []reading // readings of the last rateSpan, oldest first
}

type reading struct {
	at    time.Time
	count uint64
}

// observe adds the counter's value at a time.
func (r *rate) observe(now time.Time, count uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.seen); n > 0 && (count < r.seen[n-1].count || now.Before(r.seen[n-1].at)) {
		r.seen = r.seen[:0] // the counter was reset
	}
	if len(r.seen) > int(rateSpan/rateTick) {
		r.seen = append(r.seen[:0], r.seen[1:]...)
	}
	r.seen = append(r.seen, reading{now, count})
}

// perSecond returns the rate computed last; 0 before there are two readings.
func (r *rate) perSecond() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.seen) < 2 {
		return 0
	}
	first, last := r.seen[0], r.seen[len(r.seen)-1]
	if !last.at.After(first.at) {
		return 0
	}
	return float64(last.count-first.count) / last.at.Sub(first.at).Seconds()
}

// watchRates computes the rates until ctx ends.
func (a *Agent) watchRates(ctx context.Context) {
	ticks, stop := a.beat.Every(rateTick)
	defer stop()
	for {
		now := time.Now()
		log := a.log.Status()
		a.appended.observe(now, log.Appended)
		a.written.observe(now, uint64(log.Written))
		for _, t := range a.targets.all() {
			t.rate.observe(now, t.reader.Ledger().Delivered)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
	}
}
