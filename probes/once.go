package probes

import (
	"context"
	"log/slog"
	"sync"

	"github.com/prometheus/prometheus/storage"
)

// Once runs one round of a probe at once, appends it to out as a [Runner] would, closes
// the probe and tells how it went. It returns at most a moment after the spec's Timeout,
// also when the probe hangs; a probe that hangs is not closed. A [Committer] is told nothing:
// out is not the log.
func Once(ctx context.Context, s Spec, out storage.AppendableV2, logger *slog.Logger) Status {
	l := newLoop(s, out, logger, &sync.Pool{})
	l.once = true
	l.attempt(ctx)
	if l.hung == nil {
		l.closeProbe()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status
}
