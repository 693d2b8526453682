// Package beat gives all regular checks of the process their ticks at the same moments. Waking an idle process costs
// more than most of these checks, so a process that wakes once a second needs less CPU than one that wakes five times.
package beat

import (
	"slices"
	"sync"
	"time"
)

// Beat gives ticks at common moments. It runs while it has listeners. It is safe for concurrent use.
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

// Every returns a channel that gets a tick every d, like that of [time.NewTicker], and a function that stops the ticks. The
// first tick comes within d. If d is not a multiple of the period, the ticks are not at the common moments.
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
		b.timer = time.AfterFunc(b.period, b.tick)
	}
	return l.ticks, func() { b.leave(l) }
}

func (b *Beat) leave(l *listener) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listeners = slices.DeleteFunc(b.listeners, func(other *listener) bool { return other == l })
	if len(b.listeners) == 0 && b.timer != nil {
		b.timer.Stop() // a tick that has begun finds no listener
		b.timer = nil
	}
}

// tick gives the ticks of one beat. It skips beats that have passed, for example while the host was suspended.
func (b *Beat) tick() {
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
