package status

import "time"

// Event is one thing that happened in the agent.
type Event struct {
	Time    time.Time
	Kind    string // restart, stop, down, held, up, paused, resumed, lost, reload, reload_failed, credentials, acknowledged
	Subject string // "target mimir", "wal", "config", "agent"
	Text    string
}
