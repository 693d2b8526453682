package gate

import (
	"fmt"
	"sync/atomic"
	"time"
)

// growEvery is the time after which a lowered limit doubles at the next success.
const growEvery = 15 * time.Second

// BatchLimit is the most samples of a request: the configured number, or less for a time after the
// receiver did not take a larger request. Safe for concurrent use.
type BatchLimit struct {
	most    int64 // as configured
	now     atomic.Int64
	changed atomic.Int64 // when it was last lowered or raised, ns since the queue began
}

// NewBatchLimit makes a limit of most samples, as configured.
func NewBatchLimit(most int) *BatchLimit {
	b := &BatchLimit{most: int64(most)}
	b.now.Store(b.most)
	return b
}

// Now returns the present limit.
func (b *BatchLimit) Now() int { return int(b.now.Load()) }

// Most returns the configured limit.
func (b *BatchLimit) Most() int { return int(b.most) }

// Shrink lowers the limit after n samples were too many, and reports whether that changed it. at is the
// age of the queue in ns, as in Grow.
func (b *BatchLimit) Shrink(n int, at int64) bool {
	for {
		old, half := b.now.Load(), int64(max(n/2, 1))
		if half >= old {
			return false
		}
		b.changed.Store(at)
		if b.now.CompareAndSwap(old, half) {
			return true
		}
	}
}

// Grow doubles a lowered limit after a success, at most once in growEvery. It reports whether it did.
func (b *BatchLimit) Grow(at int64) bool {
	now, changed := b.now.Load(), b.changed.Load()
	if now >= b.most || time.Duration(at-changed) < growEvery || !b.changed.CompareAndSwap(changed, at) {
		return false
	}
	return b.now.CompareAndSwap(now, min(2*now, b.most))
}

// Restore resets the limit to the configured one, and reports whether it was lower.
func (b *BatchLimit) Restore() bool { return b.now.Swap(b.most) < b.most }

// Why explains a lowered limit in words; "" if the limit is not lowered.
func (b *BatchLimit) Why() string {
	now := b.now.Load()
	if now >= b.most {
		return ""
	}
	return fmt.Sprintf("sends at most %d samples in a request, not %d: the receiver did not take more (413, or 429 again and again), and is asked for twice as many each 15 s", now, b.most)
}
