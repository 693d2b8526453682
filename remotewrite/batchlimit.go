package remotewrite

import (
	"context"
	"log/slog"
)

// batchLimit is how many samples a request may have.
func (q *Queue) batchLimit() int { return q.limit.Now() }

// shrinkBatch remembers that n samples were too many for a request.
func (q *Queue) shrinkBatch(n int) {
	was := q.batchLimit()
	if !q.limit.Shrink(n, q.sinceBorn()) {
		return
	}
	q.metrics.SetMaxSamples(q.batchLimit())
	level := slog.LevelDebug
	if now, last := q.sinceBorn(), q.toldLimit.Load(); was == q.limit.Most() && (last == 0 || now-last >= int64(toldEvery)) {
		q.toldLimit.Store(now)
		level = slog.LevelInfo
	}
	q.log.LogAttrs(context.Background(), level, "The receiver finds a request too large; sending smaller ones for a while", slog.Int("max_samples_per_send", q.batchLimit()))
}

// growBatch takes note of a success.
func (q *Queue) growBatch() {
	if q.limit.Grow(q.sinceBorn()) {
		q.metrics.SetMaxSamples(q.batchLimit())
		q.log.Debug("Sending larger requests again", slog.Int("max_samples_per_send", q.batchLimit()))
	}
}

// restoreBatch forgets that requests were too large: one sample alone was what was too large, or the
// receiver called all of them so. Whether there is another limit is found out again, in a few requests.
func (q *Queue) restoreBatch() {
	if q.limit.Restore() {
		q.metrics.SetMaxSamples(q.batchLimit())
		q.log.Info("Sending requests of full size again", slog.Int("max_samples_per_send", q.batchLimit()))
	}
}
