package meter

import (
	"cmp"
	"sync"
	"time"
)

// Rates are averages over rateSpan unless they say otherwise, so that they stay steady between the rounds of probes, and updated every RateTick,
// so that they follow changes.
const (
	rateSpan = time.Minute
	RateTick = 5 * time.Second
)

// Rate computes how fast a counter grows, per second, averaged over a time. Safe for concurrent use.
type Rate struct {
	Span time.Duration // of the average; 0: rateSpan

	mu   sync.Mutex
	seen []reading // readings of the span, oldest first
}

type reading struct {
	at    time.Time
	count uint64
}

// Observe adds the counter's value at a time.
func (r *Rate) Observe(now time.Time, count uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.seen); n > 0 && (count < r.seen[n-1].count || now.Before(r.seen[n-1].at)) {
		r.seen = r.seen[:0] // the counter was reset
	}
	if len(r.seen) > int(cmp.Or(r.Span, rateSpan)/RateTick) {
		r.seen = append(r.seen[:0], r.seen[1:]...)
	}
	r.seen = append(r.seen, reading{now, count})
}

// PerSecond returns the rate computed last; 0 before there are two readings.
func (r *Rate) PerSecond() float64 {
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
