package wal

import (
	"sync"
	"time"
)

// maxPendingTimes bounds the memory of pendingTimes.
const maxPendingTimes = 256

// pendingTimes remembers the oldest timestamps of the entries that were read and have no
// final outcome yet. It joins neighbouring entries to bound its memory. It is safe for
// concurrent use.
type pendingTimes struct {
	mu    sync.Mutex
	spans []pendingSpan
	grain int  // entries per new span
	last  int  // entries in the last span so far
	stale bool // spans are of an earlier pass, and are removed by the first entry of the next
}

// pendingSpan represents consecutive entries.
type pendingSpan struct {
	last uint64 // commit number of the last one
	minT int64  // milliseconds
}

func (p *pendingTimes) add(e *Entry) {
	if e.Count() == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stale {
		p.spans, p.stale = p.spans[:0], false
	}
	if len(p.spans) == 0 {
		p.grain, p.last = 1, 0
	}
	if n := len(p.spans); n > 0 && p.last < p.grain {
		s := &p.spans[n-1]
		s.last, s.minT = e.End.Commit, min(s.minT, e.MinT)
		p.last++
		return
	}
	if len(p.spans) == maxPendingTimes {
		for i := range maxPendingTimes / 2 {
			a, b := p.spans[2*i], p.spans[2*i+1]
			p.spans[i] = pendingSpan{b.last, min(a.minT, b.minT)}
		}
		p.spans = p.spans[:maxPendingTimes/2]
		p.grain *= 2
	}
	p.spans = append(p.spans, pendingSpan{e.End.Commit, e.MinT})
	p.last = 1
}

// settle forgets acknowledged entries.
func (p *pendingTimes) settle(acked Mark) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for n < len(p.spans) && p.spans[n].last <= acked.Commit {
		n++
	}
	p.spans = append(p.spans[:0], p.spans[n:]...)
}

// restart prepares for reading the entries again. The oldest time stays known until the
// first of them is added.
func (p *pendingTimes) restart() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stale = true
}

func (p *pendingTimes) oldest() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.spans) == 0 {
		return time.Time{}
	}
	t := p.spans[0].minT
	for _, s := range p.spans[1:] {
		t = min(t, s.minT)
	}
	return time.UnixMilli(t)
}
