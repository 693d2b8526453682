package status

import (
	"slices"
	"strings"
)

// Rank orders severities and levels, the worst first.
func Rank(level string) int {
	if i := slices.Index([]string{SeverityError, SeverityWarning, SeverityNote}, level); i >= 0 {
		return i
	}
	return 3
}

// LevelOf returns the level of a target's worst problem.
func LevelOf(s Status, t TargetStatus) string {
	level := LevelOK
	for _, p := range s.Problems {
		if p.Subject == "target "+t.Name && Rank(p.Severity) < Rank(SeverityNote) && level != SeverityError {
			level = p.Severity
		}
	}
	if level == LevelOK && deliveryOf(s, t) != Delivering {
		level = SeverityNote
	}
	return level
}

// Word describes the state of the target's queue, or, while the queue is fine, the delivery of its data if that is known.
func Word(s Status, t TargetStatus) string {
	switch t.State {
	case StateHeld, StateRetrying, StatePaused, StateStopped, StateOrphan:
		return t.State
	}
	d := deliveryOf(s, t)
	if d == DeliveryIdle && t.State == StateStarting {
		return t.State
	}
	if sum, _ := lossesOf(s, t.Name); (d == DeliveryLosing || d == DeliveryLost) && sum.Refused > 0 && sum.Lost == 0 {
		return OutcomeRefused
	}
	return strings.ReplaceAll(d, "_", " ")
}

// Level returns the level of the probe's state.
func (p ProbeStatus) Level() string {
	switch p.State {
	case "failing", "hung":
		return SeverityWarning
	case "waiting":
		return SeverityNote
	case "ok":
		if p.LastError != "" { // one part could not be read
			return SeverityNote
		}
	}
	return LevelOK
}
