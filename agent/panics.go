package agent

import (
	"time"

	"hwsagent/agent/clock"
	"hwsagent/agent/status"
	"hwsagent/internal/panics"
)

// panicStatus describes the panics of one input; nil if there were none.
func panicStatus(s panics.State, now time.Time) *status.PanicStatus {
	if s.Count == 0 {
		return nil
	}
	return &status.PanicStatus{Count: s.Count, Since: clock.OnWall(now, s.First), Last: clock.OnWall(now, s.Time), Error: s.Last.Error()}
}
