package status

import "time"

// How long a target may accept nothing until that is an error, if waiting can help.
const (
	downOnly  = 2 * time.Minute // the only target
	downOther = 5 * time.Minute // one of several
)

// downSeverity returns how bad it is that a held or retrying target accepts nothing: an error at once if waiting cannot
// help, else after a while.
func downSeverity(s Status, t TargetStatus) string {
	after := downOther
	if targets(s) == 1 {
		after = downOnly
	}
	if t.Permanent || downFor(s, t) >= after {
		return SeverityError
	}
	return SeverityWarning
}

// targets counts the configured targets.
func targets(s Status) (n int) {
	for _, t := range s.Targets {
		if t.State != StateOrphan {
			n++
		}
	}
	return n
}

// downFor returns how long t has accepted nothing. The waiting samples may be younger, because the log may have dropped
// the oldest.
func downFor(s Status, t TargetStatus) time.Duration {
	if t.DownSince.IsZero() {
		return Seconds(t.LagSeconds)
	}
	return max(s.Now.Sub(t.DownSince), 0)
}

// downSince says since when t has accepted nothing, and how long that is.
func downSince(s Status, t TargetStatus) string {
	d := downFor(s, t)
	return "Down since " + Clock(s.Now, s.Now.Add(-d)) + " (" + Span(d) + ")"
}

// Down says since when t has accepted nothing, and when it is tried next; "" if it accepts samples or is paused.
func Down(s Status, t TargetStatus) string {
	if t.State != StateHeld && t.State != StateRetrying {
		return ""
	}
	text := "down since " + Clock(s.Now, s.Now.Add(-downFor(s, t)))
	if t.NextTry.After(s.Now) {
		text += ", next try " + Until(s.Now, t.NextTry)
	}
	return text
}

// Severity returns how bad it is that t, one of the targets of s, accepts nothing: 0 if it accepts samples, 1 for a warning,
// 2 for an error. The agent's metric has it, so that alerts follow the rule of the page.
func Severity(s Status, t TargetStatus) int {
	b, ok := stuck(s, t)
	switch {
	case !ok:
		return 0
	case b.severity == SeverityError:
		return 2
	}
	return 1
}
