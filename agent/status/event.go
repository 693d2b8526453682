package status

import "time"

// Event is one thing that happened in the agent.
type Event struct {
	Time    time.Time
	Kind    string // restart, stop, down, held, up, paused, resumed, lost, refused, unconfirmed, reload, reload_failed, credentials, acknowledged
	Subject string // "target mimir", "log", "config", "agent"
	Text    string
}
