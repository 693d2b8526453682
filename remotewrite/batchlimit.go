package remotewrite

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// growEvery is after how long without a 413 a lowered limit doubles at the next success.
const growEvery = time.Minute

// batchLimit is how many samples a request may have: what is configured, and less for a time after the
// receiver called a request too large. Safe for concurrent use.
type batchLimit struct {
	most    int64 // as configured
	now     atomic.Int64
	changed atomic.Int64 // when it was last lowered or raised, ns since the queue began
}

func newBatchLimit(most int) *batchLimit {
	b := &batchLimit{most: int64(most)}
	b.now.Store(b.most)
	return b
}

// shrink lowers the limit after n samples were too many, and reports whether that changed it; at is the
// age of the queue in ns.
func (b *batchLimit) shrink(n int, at int64) bool {
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

// grow doubles a lowered limit after a success, at most once in growEvery. It reports whether it did.
func (b *batchLimit) grow(at int64) bool {
	now, changed := b.now.Load(), b.changed.Load()
	if now >= b.most || time.Duration(at-changed) < growEvery || !b.changed.CompareAndSwap(changed, at) {
		return false
	}
	return b.now.CompareAndSwap(now, min(2*now, b.most))
}

// restore makes the limit what is configured, and reports whether it was lower.
func (b *batchLimit) restore() bool { return b.now.Swap(b.most) < b.most }

// why says in words that the limit is low; "" if it is not.
func (b *batchLimit) why() string {
	now := b.now.Load()
	if now >= b.most {
		return ""
	}
	return fmt.Sprintf("sends at most %d samples in a request, not %d: the receiver answered 413 to more, and is asked for twice as many each minute", now, b.most)
}

// batchLimit is how many samples a request may have.
func (q *Queue) batchLimit() int { return int(q.limit.now.Load()) }

// shrinkBatch remembers that n samples were too many for a request.
func (q *Queue) shrinkBatch(n int) {
	was := q.batchLimit()
	if !q.limit.shrink(n, q.sinceBorn()) {
		return
	}
	q.metrics.SetMaxSamples(q.batchLimit())
	level := slog.LevelDebug
	if now, last := q.sinceBorn(), q.toldLimit.Load(); int64(was) == q.limit.most && (last == 0 || now-last >= int64(toldEvery)) {
		q.toldLimit.Store(now)
		level = slog.LevelInfo
	}
	q.log.LogAttrs(context.Background(), level, "The receiver finds a request too large; sending smaller ones for a while", slog.Int("max_samples_per_send", q.batchLimit()))
}

// growBatch takes note of a success.
func (q *Queue) growBatch() {
	if q.limit.grow(q.sinceBorn()) {
		q.metrics.SetMaxSamples(q.batchLimit())
		q.log.Debug("Sending larger requests again", slog.Int("max_samples_per_send", q.batchLimit()))
	}
}

// restoreBatch forgets that requests were too large: one sample alone was what was too large, or the
// receiver called all of them so. Whether there is another limit is found out again, in a few requests.
func (q *Queue) restoreBatch() {
	if q.limit.restore() {
		q.metrics.SetMaxSamples(q.batchLimit())
		q.log.Info("Sending requests of full size again", slog.Int("max_samples_per_send", q.batchLimit()))
	}
}
