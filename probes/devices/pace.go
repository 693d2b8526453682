package devices

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Pace bounds the requests to one device, and with it those to all devices of its list. A nil
// Pace bounds nothing. It is safe for concurrent use.
type Pace struct{ all, own *rate.Limiter }

// ErrPace means that the limits of requests left no time for a request. It says nothing about
// the device.
var ErrPace = errors.New("the limit of requests per second leaves no time for it in this round: raise max_requests_per_second, the interval or the timeout")

// Wait returns when the next request may be sent, or an error: that of ctx, or at once
// [ErrPace] if that would be after the deadline of ctx.
func (p *Pace) Wait(ctx context.Context) error {
	if p == nil {
		return nil
	}
	for _, l := range []*rate.Limiter{p.own, p.all} {
		if l == nil {
			continue
		}
		if err := l.Wait(ctx); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("%w: %w", ErrPace, err)
		}
	}
	return nil
}

// Paces keeps the limits that the devices of a list share, by the list's name, so that probes
// from before and after a change of the list are bounded together. The zero value is ready
// for use, and safe for concurrent use.
type Paces struct {
	mu    sync.Mutex
	lists map[string]*rate.Limiter
}

// For is the pace of one device of the list of that name; nil where l has no limit.
func (p *Paces) For(name string, l *List) *Pace {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.lists[name]
	switch {
	case l.MaxRequests == 0:
		delete(p.lists, name)
		all = nil
	case all == nil:
		if p.lists == nil {
			p.lists = map[string]*rate.Limiter{}
		}
		all = limiter(l.MaxRequests)
		p.lists[name] = all
	case all.Limit() != rate.Limit(l.MaxRequests):
		all.SetLimit(rate.Limit(l.MaxRequests))
		all.SetBurst(burst(l.MaxRequests))
	}
	own := (*rate.Limiter)(nil)
	if l.MaxRequestsPerDevice > 0 {
		own = limiter(l.MaxRequestsPerDevice)
	}
	if all == nil && own == nil {
		return nil
	}
	return &Pace{all: all, own: own}
}

func limiter(perSecond float64) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(perSecond), burst(perSecond))
}

// catchUp is how much of a rate may be sent at once: timers wake up late by about a
// millisecond, and a rate of thousands would never be reached one by one.
const catchUp = 20 * time.Millisecond

func burst(perSecond float64) int { return max(1, int(perSecond*catchUp.Seconds())) }
