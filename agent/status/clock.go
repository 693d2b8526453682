package status

import (
	"fmt"
	"time"
)

const (
	// clockNews is how long a step or a suspend stays in the status.
	clockNews = time.Hour

	// oftenSet is how often one program may set a clock that needs it; more often means a mistake.
	oftenSet = 3

	// firstYear is the year in which this program was written: a clock before it is wrong.
	firstYear = 2025
)

// clockProblems reports recent changes of this host's clock, and their consequences.
func clockProblems(s Status) []Problem {
	var all []Problem
	c := s.Clock
	if s.Running && s.Now.Year() < firstYear {
		all = append(all, Problem{SeverityWarning, "clock", fmt.Sprintf("this host's clock says %s: it is not set. Samples carry that time, and receivers refuse such old samples", s.Now.Format("January 2006")),
			tryClock})
	}
	if recent(s.Now, c.LastStepAt) && c.LastStepSeconds != 0 {
		by := Seconds(c.LastStepSeconds)
		text := fmt.Sprintf("this host's clock was set %s at %s", Span(by)+direction(by), Clock(s.Now, c.LastStepAt))
		if c.Steps > 1 {
			text += fmt.Sprintf(" (%s times since the start)", Count(c.Steps))
		}
		if by < 0 {
			text += ". Samples carry times that were used before: receivers that accept no out-of-order samples refuse them until the clock is past " + Clock(s.Now, s.Now.Add(-by-s.Now.Sub(c.LastStepAt)))
		} else {
			text += ". Samples collected before keep their time and are sent. If the new time is wrong: samples ahead of a receiver's clock by more than its future_limit are dropped and counted"
		}
		p := Problem{SeverityNote, "clock", text, ""}
		if c.Steps > oftenSet {
			p.Try = "let one program only set the clock (chrony, systemd-timesyncd, or the hypervisor)"
		}
		all = append(all, p)
	}
	if recent(s.Now, c.LastSuspendAt) && c.LastSuspendSeconds > 0 {
		all = append(all, Problem{SeverityNote, "clock", fmt.Sprintf("this host was suspended for %s until %s: no samples were collected meanwhile",
			Span(Seconds(c.LastSuspendSeconds)), Clock(s.Now, c.LastSuspendAt)), ""})
	}
	return all
}

// skewCost ends the problem of clocks that differ.
const skewCost = "; receivers refuse samples that are too old or in the future"

// skewProblems reports a difference of the clocks, and its consequences.
func skewProblems(now time.Time, t TargetStatus) []Problem {
	if dropsFuture(t) {
		return []Problem{{SeverityError, "target " + t.Name, fmt.Sprintf(
			"a wrong clock loses samples: the receiver's clock says %s, a difference of more than future_limit (%s). %s were dropped as future",
			bothClocks(now.Add(-t.ClockSkew), now), Span(t.FutureLimit), Samples(t.Ledger.Dropped["future"])), tryBothClocks}}
	}
	if t.ClockSkew.Abs() <= skewWarn || t.AwaitsClock || (t.State == StateHeld || t.State == StateRetrying) && t.Failure == "clock_skew" {
		return nil // agreement, or the target's own finding says it
	}
	p := Problem{SeverityWarning, "target " + t.Name, fmt.Sprintf("this host's clock is %s ahead of the receiver's", Span(t.ClockSkew)), tryEither}
	if t.ClockSkew < 0 {
		p.Text = fmt.Sprintf("this host's clock is %s behind the receiver's", Span(t.ClockSkew))
	}
	p.Text += skewCost
	return []Problem{p}
}

// dropsFuture reports whether present samples are dropped for being ahead of the receiver's clock: some were dropped,
// and this host's clock is still ahead by more than the limit.
func dropsFuture(t TargetStatus) bool {
	return t.FutureLimit > 0 && t.ClockSkew > t.FutureLimit && t.Ledger.Dropped["future"] > 0
}

// bothClocks formats the time at the receiver and at this host for comparison: with the date where it differs.
func bothClocks(receiver, host time.Time) string {
	receiver, layout := receiver.In(host.Location()), time.TimeOnly
	if receiver.Format(time.DateOnly) != host.Format(time.DateOnly) {
		layout = time.DateTime
	}
	return receiver.Format(layout) + ", this host's " + host.Format(layout)
}

const (
	tryClock      = "set the clock (chrony, systemd-timesyncd)"
	tryEither     = "set the clock that is wrong (chrony, systemd-timesyncd): this host's or the receiver's"
	tryBothClocks = "set the clock that is wrong (chrony, systemd-timesyncd): this host's, or that of the receiver or of the proxy before it, which the header Date shows; " +
		"if that cannot be done now, hwsagent: {future_limit: 0s} in the target's entry sends everything"
)

func recent(now, t time.Time) bool { return !t.IsZero() && now.Sub(t) < clockNews }

func direction(by time.Duration) string {
	if by < 0 {
		return " back"
	}
	return " ahead"
}
