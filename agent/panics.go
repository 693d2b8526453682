package agent

import (
	"time"

	"hwsagent/agent/web"
	"hwsagent/internal/panics"
)

// panicStatus describes the panics of one input; nil if there were none.
func panicStatus(s panics.State, now time.Time) *web.PanicStatus {
	if s.Count == 0 {
		return nil
	}
	return &web.PanicStatus{Count: s.Count, Since: byClock(now, s.First), Last: byClock(now, s.Time), Error: s.Last.Error()}
}
