package devices

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Pace limits the requests to one device, together with those to all devices of its list. A nil Pace has no limit. It
// is safe for concurrent use.
type Pace struct{ all, own *rate.Limiter }

// ErrPace means that the limits of requests left no time for a request. It says nothing about
// the device.
var ErrPace = errors.New("the limit of requests per second leaves no time for it in this round: raise max_requests_per_second, the interval or the timeout")

// Wait waits until the next request may be sent. It returns the error of ctx, or at once [ErrPace] if that would be
// after the deadline of ctx.
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

// Paces keeps the limits shared by the devices of a list, by the list's name, so that they also hold for probes from
// before and after a change of the list together. The zero value is ready for use, and safe for concurrent use.
type Paces struct {
	mu    sync.Mutex
	lists map[string]*rate.Limiter
}

// For returns the pace of one device of the named list; nil if l has no limit.
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

// catchUp is how much of a rate may be sent at once: timers are late by about a millisecond, so a rate of thousands
// would never be reached with single requests.
const catchUp = 20 * time.Millisecond

func burst(perSecond float64) int { return max(1, int(perSecond*catchUp.Seconds())) }
