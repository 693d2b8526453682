package agent

import (
	"context"
	"sync"
	"time"
)

// rateSpan is the time over which rates are computed.
const rateSpan = 5 * time.Second

// rate is how fast a counter grows, per second, over the last rateSpan.
type rate struct {
	mu    sync.Mutex
	at    time.Time
	count uint64
	value float64
}

// observe takes the counter's value at a time.
func (r *rate) observe(now time.Time, count uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.at.IsZero() && now.After(r.at) && count >= r.count {
		r.value = float64(count-r.count) / now.Sub(r.at).Seconds()
	}
	r.at, r.count = now, count
}

// perSecond is the rate as last computed; 0 before the first rateSpan has passed.
func (r *rate) perSecond() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.value
}

// watchRates computes the rates until ctx ends.
func (a *Agent) watchRates(ctx context.Context) {
	tick := time.NewTicker(rateSpan)
	defer tick.Stop()
	for {
		now := time.Now()
		a.appended.observe(now, a.log.Status().Appended)
		for _, t := range a.targets.all() {
			t.rate.observe(now, t.reader.Ledger().Delivered)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
