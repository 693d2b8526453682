package remotewrite

import (
	"context"
	"log/slog"
	"time"

	"hwsagent/remotewrite/client"
)

// batchLimit returns how many samples a request may have. With on_refusal: drop a refused one is lost as a whole, so it is small.
func (q *Queue) batchLimit() int {
	most := q.limit.Now()
	if q.drops() {
		most = min(most, mostDivided)
	}
	return q.facts.Limit(most, time.Now())
}

// shrinkBatch records that n samples were too many for a request.
func (q *Queue) shrinkBatch(n int) {
	was := q.batchLimit()
	if !q.limit.Shrink(n, q.sinceBorn()) {
		return
	}
	q.metrics.SetMaxSamples(q.batchLimit())
	level := slog.LevelDebug
	if was == q.limit.Most() && q.toldLimit.due(q.sinceBorn()) {
		level = slog.LevelInfo
	}
	q.log.LogAttrs(context.Background(), level, "The receiver finds a request too large; sending smaller ones for a while", slog.Int("max_samples_per_send", q.batchLimit()))
}

// sendSmaller limits requests for an hour to the size of batches that are divided, after a larger one was refused with the answer, or has
// failed again and again.
func (q *Queue) sendSmaller(a client.Answer) {
	q.facts.Lower(mostDivided, time.Now())
	q.metrics.SetMaxSamples(q.batchLimit())
	if q.toldLimit.due(q.sinceBorn()) {
		q.log.Info("The receiver does not take a large request; sending smaller ones for an hour", slog.String("answer", a.String()), slog.Int("max_samples_per_send", q.batchLimit()))
	}
}

// growBatch records a success, after which the limit may grow. The limit after a refusal ends by itself.
func (q *Queue) growBatch() {
	grown := q.limit.Grow(q.sinceBorn())
	q.metrics.SetMaxSamples(q.batchLimit())
	if grown {
		q.log.Debug("Sending larger requests again", slog.Int("max_samples_per_send", q.batchLimit()))
	}
}

// restoreBatch lifts the limit: a single sample was too large, or the receiver called every request too large. If there
// is another limit, a few requests find it again.
func (q *Queue) restoreBatch() {
	if q.limit.Restore() {
		q.metrics.SetMaxSamples(q.batchLimit())
		q.log.Info("Sending requests of full size again", slog.Int("max_samples_per_send", q.batchLimit()))
	}
}
