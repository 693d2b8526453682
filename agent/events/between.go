package events

import (
	"fmt"
	"time"

	"hwsagent/agent/status"
	"hwsagent/internal/text"
)

// Between returns the events between two statuses, as far as they show. It is pure.
func Between(before, after status.Status) []Event {
	var all []Event
	add := func(kind, subject, text string) {
		all = append(all, Event{after.Now, kind, subject, text})
	}
	// Compare times by their distance from the start: setting the clock moves all of them.
	newer := func(is, was time.Time) bool {
		return !is.IsZero() && is.Sub(after.Started) > was.Sub(before.Started)+tolerance
	}
	switch was, is := before.WAL.Error != "", after.WAL.Error != ""; {
	case is && !was:
		add(Down, "log", "the log cannot be written: "+text.FirstLine(after.WAL.Error))
	case was && !is:
		add(Up, "log", "the log can be written again")
	}
	known := map[string]status.TargetStatus{}
	for _, t := range before.Targets {
		known[t.Name] = t
	}
	for _, t := range after.Targets {
		was, ok := known[t.Name]
		if !ok {
			was.State = status.StateStarting
		}
		subject := "target " + t.Name
		if kind, text := turn(was, t); kind != "" {
			add(kind, subject, text)
		}
		for _, q := range t.Muted {
			if ofReason(was, q.Reason) == nil {
				add(Muted, subject, fmt.Sprintf("%d series are not sent: %s; the receiver says: %s", q.Series, q.Text, text.FirstLine(q.Words)))
			}
		}
		for _, q := range was.Muted {
			if ok && ofReason(t, q.Reason) == nil {
				add(Released, subject, fmt.Sprintf("series are sent again that were not sent because %s", q.Text))
			}
		}
		if ok && newer(t.CredentialsAt, was.CredentialsAt) {
			add(Credentials, subject, "its credential files have changed and are in use")
		}
	}
	return all
}

// ofReason returns the entry for a target's series that are not sent for a reason, nil if there is none.
func ofReason(t status.TargetStatus, reason string) *status.MuteStatus {
	for i := range t.Muted {
		if t.Muted[i].Reason == reason {
			return &t.Muted[i]
		}
	}
	return nil
}

// tolerance allows for the rounding of times that were converted after a clock was set.
const tolerance = 100 * time.Millisecond

// turn returns the event for a change of a target's state; "" if there is none.
func turn(was, is status.TargetStatus) (kind, text string) {
	from, to := flow(was.State), flow(is.State)
	switch {
	case from == to:
		return "", ""
	case to == Paused:
		return Paused, "paused by command"
	case to == Held, to == Down:
		return to, status.Why(is)
	case from == Paused:
		return Resumed, "resumed by command"
	case from == Held, from == Down:
		return Up, fmt.Sprintf("accepts data again; it was %s", from)
	}
	return "", ""
}

// flow reduces a state to the parts that matter for events.
func flow(state string) string {
	switch state {
	case status.StateHeld:
		return Held
	case status.StateRetrying, status.StateStopped:
		return Down
	case status.StatePaused:
		return Paused
	}
	return Up
}
