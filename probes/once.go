package probes

import (
	"context"
	"log/slog"

	"github.com/prometheus/prometheus/storage"

	"hwsagent/internal/spare"
)

// Once runs one round of a probe, appends it to out as a [Runner] would, closes the probe and returns the outcome. It
// returns at most a moment after the spec's Timeout, even if the probe hangs; it does not close a hanging probe. It
// does not call [Committer], because out is not the log.
func Once(ctx context.Context, s Spec, out storage.AppendableV2, logger *slog.Logger) Status {
	l := newLoop(s, out, logger, &spare.Stack[Round]{})
	l.once = true
	l.attempt(ctx)
	if l.hung == nil {
		l.closeProbe()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status
}
