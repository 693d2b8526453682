package events

import (
	"fmt"
	"time"

	"hwsagent/agent/status"
	"hwsagent/internal/text"
)

// Between returns the events between two statuses, as far as they show, without those of the targets' states, for which see
// turn. It is pure.
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
		subject := "target " + t.Name
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

// turn returns the event for the state of a target; "" if there is none. was is the kind of its event before: down, held or
// paused; else it is "".
func turn(was string, t status.TargetStatus) (kind, text string) {
	switch is := flow(t); {
	case is == was, is == unknown && was != Paused:
		return "", ""
	case is == Paused:
		return Paused, "paused by command"
	case is == Held, is == Down:
		return is, status.Why(t)
	case was == Paused:
		return Resumed, "resumed by command"
	}
	return Up, "accepts data again; it was " + was
}

// unknown is the flow of a target whose queue has had no answer yet.
const unknown = "unknown"

// flow reduces the state of a target to what matters for events; "" if it accepts data.
func flow(t status.TargetStatus) string {
	switch t.State {
	case status.StateHeld:
		return Held
	case status.StateRetrying, status.StateStopped:
		return Down
	case status.StatePaused:
		return Paused
	}
	if t.Unproven() {
		return unknown
	}
	return ""
}
