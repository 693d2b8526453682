package agent

import (
	"time"

	"hwsagent/agent/status"
	"hwsagent/internal/panics"
)

// panicStatus describes the panics of one input; nil if there were none.
func panicStatus(s panics.State, now time.Time) *status.PanicStatus {
	if s.Count == 0 {
		return nil
	}
	return &status.PanicStatus{Count: s.Count, Since: byClock(now, s.First), Last: byClock(now, s.Time), Error: s.Last.Error()}
}
