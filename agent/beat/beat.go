// Package beat wakes all that looks at something regularly at the same moments. To wake an idle process costs more than most of what
// is then looked at: one that wakes once a second takes less than one that wakes five times in it.
package beat

import (
	"slices"
	"sync"
	"time"
)

// Beat gives ticks at common moments. It runs while somebody listens. It is safe for concurrent use.
type Beat struct {
	period time.Duration

	mu        sync.Mutex
	listeners []*listener
	timer     *time.Timer // nil while there are no listeners
	next      time.Time   // when it fires
	count     int64       // of beats
}

// listener gets a tick every so many beats.
type listener struct {
	every int64
	ticks chan time.Time // has room for one, as a ticker's has
}

// New makes a beat of that period, which is more than 0.
func New(period time.Duration) *Beat { return &Beat{period: period} }

// Every returns a channel that gets a tick each d, and a function that ends this, as [time.NewTicker] does, but for the first tick: it
// comes at any time up to d from now. Where d is no multiple of the period, the ticks are not at the common moments.
func (b *Beat) Every(d time.Duration) (ticks <-chan time.Time, stop func()) {
	if d%b.period != 0 {
		t := time.NewTicker(d)
		return t.C, t.Stop
	}
	l := &listener{every: int64(d / b.period), ticks: make(chan time.Time, 1)}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listeners = append(b.listeners, l)
	if b.timer == nil {
		b.next = time.Now().Add(b.period)
		b.timer = time.AfterFunc(b.period, b.strike)
	}
	return l.ticks, func() { b.leave(l) }
}

func (b *Beat) leave(l *listener) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listeners = slices.DeleteFunc(b.listeners, func(other *listener) bool { return other == l })
	if len(b.listeners) == 0 && b.timer != nil {
		b.timer.Stop() // a strike that has begun finds no listener
		b.timer = nil
	}
}

// strike gives the ticks of one beat. Beats that have passed meanwhile, as while the host was suspended, are left out.
func (b *Beat) strike() {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if b.timer == nil || now.Before(b.next) { // of listeners that have left
		return
	}
	b.count++
	for _, l := range b.listeners {
		if b.count%l.every != 0 {
			continue
		}
		select {
		case l.ticks <- now:
		default: // it has not taken the last one yet
		}
	}
	b.next = b.next.Add(b.period)
	if !b.next.After(now) {
		b.next = now.Add(b.period)
	}
	b.timer.Reset(b.next.Sub(now))
}
