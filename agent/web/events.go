package web

import (
	"slices"
	"strings"
	"time"

	"hwsagent/agent/status"
)

// maxEvents bounds how many events the page shows.
const maxEvents = 8

// eventsView holds the newest events for the page.
type eventsView struct {
	Lines []eventLine
	More  int // older events that are left out
}

type eventLine struct {
	At                moment
	Kind, Level, Text string
	Subjects          []string
}

// newEvents returns the events of the last 24 hours, newest first. It merges equal events in a row, and drops texts
// that the problems already have.
func newEvents(s status.Status, events []status.Event) eventsView {
	var v eventsView
	var last time.Time
	for _, e := range slices.Backward(events) {
		if s.Now.Sub(e.Time) > status.LossesFor {
			break
		}
		l := eventLine{At: newMoment(s.Now, e.Time), Kind: strings.ReplaceAll(e.Kind, "_", " "), Level: eventLevel(e.Kind), Subjects: []string{e.Subject}, Text: e.Text}
		goesOn := s.WAL.Error != "" && e.Subject == "log" && e.Kind == status.OutcomeRefused // the log's row counts them by now
		if goesOn || slices.ContainsFunc(s.Problems, func(p status.Problem) bool { return strings.Contains(p.Text, e.Text) }) {
			l.Text = ""
		}
		if n := len(v.Lines); n > 0 && v.More == 0 && v.Lines[n-1].Kind == l.Kind && v.Lines[n-1].Text == l.Text && last.Sub(e.Time) < time.Minute {
			if before := &v.Lines[n-1].Subjects; !slices.Contains(*before, e.Subject) {
				*before = append(*before, e.Subject)
			}
			continue
		}
		if len(v.Lines) == maxEvents {
			v.More++
			continue
		}
		v.Lines, last = append(v.Lines, l), e.Time
	}
	return v
}

// eventLevel returns the colour of an event.
func eventLevel(kind string) string {
	switch kind {
	case "down", "held", "lost", "refused", "reload_failed":
		return status.SeverityError
	case "paused", "unconfirmed":
		return status.SeverityWarning
	case "up", "resumed", "reload":
		return status.LevelOK
	}
	return status.SeverityNote
}
