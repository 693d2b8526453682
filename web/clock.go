package web

import (
	"fmt"
	"time"
)

const (
	// clockNews is for how long a step or a suspend is told.
	clockNews = time.Hour

	// oftenSet is how often a clock is set by one program that does so when it must; more
	// is somebody's mistake.
	oftenSet = 3

	// firstYear is when this program was written: a clock before it is wrong.
	firstYear = 2025
)

// clockProblems tells what happened to this host's clock lately, and what it means.
func clockProblems(s Status) []Problem {
	var all []Problem
	c := s.Clock
	if s.Running && s.Now.Year() < firstYear {
		all = append(all, Problem{SeverityWarning, "clock", fmt.Sprintf("this host's clock says %s: it is not set. Samples carry that time, and receivers refuse what is so old", s.Now.Format("January 2006")),
			tryClock})
	}
	if recent(s.Now, c.LastStepAt) && c.LastStepSeconds != 0 {
		by := seconds(c.LastStepSeconds)
		text := fmt.Sprintf("this host's clock was set %s at %s", span(by)+direction(by), clock(s.Now, c.LastStepAt))
		if c.Steps > 1 {
			text += fmt.Sprintf(" (%s times since the start)", count(c.Steps))
		}
		if by < 0 {
			text += ". Samples carry times that were used before: receivers that take nothing out of order refuse them until the clock is past " + clock(s.Now, s.Now.Add(-by-s.Now.Sub(c.LastStepAt)))
		} else {
			text += ". What was collected before keeps its time and is sent. If the new time is wrong: samples ahead of a receiver's clock by more than its future_limit are dropped and counted"
		}
		p := Problem{SeverityNote, "clock", text, ""}
		if c.Steps > oftenSet {
			p.Try = "let one program only set the clock (chrony, systemd-timesyncd, or the hypervisor)"
		}
		all = append(all, p)
	}
	if recent(s.Now, c.LastSuspendAt) && c.LastSuspendSeconds > 0 {
		all = append(all, Problem{SeverityNote, "clock", fmt.Sprintf("this host was suspended for %s until %s: nothing was collected meanwhile",
			span(seconds(c.LastSuspendSeconds)), clock(s.Now, c.LastSuspendAt)), ""})
	}
	return all
}

const tryClock = "set the clock (chrony, systemd-timesyncd)"

func recent(now, t time.Time) bool { return !t.IsZero() && now.Sub(t) < clockNews }

func direction(by time.Duration) string {
	if by < 0 {
		return " back"
	}
	return " ahead"
}
