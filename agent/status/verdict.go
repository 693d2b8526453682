package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"hwsagent/internal/text"
)

// Verdict answers "is my data arriving" in one line. Page, JSON, command line and its exit code
// show this one value; the page adds the hardware, which no exit code depends on.
type Verdict struct {
	Level string `json:"level"` // ok, warning, error
	Text  string `json:"text"`

	// ExitCode is the exit code of `hwsagent status`.
	ExitCode int `json:"exit_code"`
}

// The values of [TargetStatus.Delivery]. Only [Delivering] is good.
const (
	Delivering     = "delivering"
	DeliveryNever  = "never_delivered" // there were samples to send, but none has arrived since the target was first known
	DeliveryBehind = "behind"          // samples wait longer than they should, or the last request failed
	DeliveryHeld   = "held"            // sending is suspended until the cause is gone
	DeliveryLosing = "losing"          // samples were lost in the last minutes
	DeliveryLost   = "lost"            // samples were lost in the last 24 hours, without acknowledgement
	DeliveryPaused = "paused"          // paused by command
	DeliveryIdle   = "unknown"         // no samples to send yet, or the first ones are on their way, or waiting samples of unknown age, or the agent is stopped
)

// Bounds of the verdict.
const (
	// grace is how long a sample may wait beyond its interval: to fill a batch, for a request and for a savepoint.
	grace = 30 * time.Second

	// defaultInterval is the default of global.scrape_interval: it counts if no input reports its interval.
	defaultInterval = 15 * time.Second

	// losingFor is how long after a loss more losses must be expected.
	losingFor = 5 * time.Minute

	// LossesFor is how long a loss stays a warning unless it is acknowledged.
	LossesFor = 24 * time.Hour
)

// Judge returns s with the fields that follow from the others: how long the log lasts, the delivery of each target,
// the problems and the verdict. It is pure: the time is s.Now.
func Judge(s Status) Status {
	s.Targets = slices.Clone(s.Targets)
	for i := range s.Targets {
		s.Targets[i].Delivery = deliveryOf(s, s.Targets[i])
	}
	if d, ok := Lasts(s); ok {
		s.WAL.LastsSeconds = d.Seconds()
	}
	s.Problems = Problems(s)
	s.Findings = Findings(s)
	v := VerdictOf(s)
	s.Verdict = &v
	return s
}

// Conclusion returns the verdict of s, even if s comes from an agent that did not send one.
func (s Status) Conclusion() Verdict {
	if s.Verdict != nil {
		return *s.Verdict
	}
	return VerdictOf(s)
}

// ExitCode returns the exit code of `hwsagent status`.
func (s Status) ExitCode() int { return s.Conclusion().ExitCode }

// late returns the age up to which a waiting sample is normal: the shortest interval of any input, plus grace.
func late(s Status) time.Duration { return shortestInterval(s) + grace }

// shortestInterval returns the shortest interval of any input: the input of a waiting sample is unknown.
func shortestInterval(s Status) time.Duration {
	shortest := time.Duration(0)
	take := func(d time.Duration) {
		if d > 0 && (shortest == 0 || d < shortest) {
			shortest = d
		}
	}
	for _, p := range s.Probes {
		take(p.Interval)
	}
	for _, j := range s.Scrape {
		for _, t := range j.Targets {
			if d, err := time.ParseDuration(t.Interval); err == nil { // fails for a day and longer, which is never the shortest
				take(d)
			}
		}
	}
	if shortest == 0 {
		shortest = defaultInterval
	}
	return shortest
}

// awaitsFirst reports whether the first samples for t are on their way to it: none is old, and nothing has failed.
func awaitsFirst(s Status, t TargetStatus) bool {
	young := t.LagSeconds > 0 && Seconds(t.LagSeconds) <= late(s)
	return s.Running && t.State == StateStarting && t.DownSince.IsZero() && t.LastError == "" && t.Ledger.Delivered == 0 && t.Ledger.Lost == 0 && young
}

// Unproven reports whether the queue of t does not know yet whether the receiver accepts anything: no request of it was
// accepted, and none has failed.
func (t TargetStatus) Unproven() bool {
	return t.LastSuccess.IsZero() && (t.State == StateStarting || t.State == StateBehind || t.State == StateOK)
}

// triesFirst reports whether the first request since the start of the queue of t must show that data arrives: the target
// accepted nothing before, or old samples wait.
func triesFirst(s Status, t TargetStatus) bool {
	old := t.State != StateOK && Seconds(t.LagSeconds) > late(s)
	return s.Running && t.Unproven() && t.PendingSamples > 0 && (old || !t.DownSince.IsZero())
}

// firstTry names the first request since the start of a queue.
func firstTry(s Status) string {
	switch sinceLoaded := s.Now.Sub(s.Config.LoadedAt); {
	case s.Config.LoadedAt.Sub(s.Started) > time.Second && sinceLoaded <= late(s):
		return "the first try with the changed entry is under way"
	case justStarted(s):
		return "the first try since the restart is under way"
	}
	return "the first try is under way"
}

// justStarted reports whether the agent runs for so short a time that nothing needs to be collected yet.
func justStarted(s Status) bool { return !s.Started.IsZero() && s.Now.Sub(s.Started) <= late(s) }

// deliveryOf returns the delivery of t; the worst state that applies wins.
func deliveryOf(s Status, t TargetStatus) string {
	l := t.Ledger
	old, last := lossesOf(s, t.Name)
	switch {
	case !s.Running:
		return DeliveryIdle
	case t.State == StatePaused:
		return DeliveryPaused
	case last.After(s.Now.Add(-losingFor)) || dropsFuture(t):
		return DeliveryLosing
	case t.State == StateHeld || t.State == StateStopped || t.State == StateOrphan && t.PendingSamples > 0:
		return DeliveryHeld
	case t.State == StateStarting && t.Credentials != "": // its first request is going to fail
		return DeliveryHeld
	case awaitsFirst(s, t):
		return DeliveryIdle
	case l.Delivered == 0 && l.Appended > l.Filtered:
		return DeliveryNever
	case t.State == StateRetrying || triesFirst(s, t) || t.MissedSamples > 0 || Seconds(t.LagSeconds) > late(s):
		return DeliveryBehind
	case old.Any():
		return DeliveryLost
	case l.Delivered == 0 || t.PendingSamples > 0 && t.OldestPending.IsZero() && t.LagSeconds == 0:
		return DeliveryIdle
	}
	return Delivering
}

// VerdictOf returns the verdict on whether the data is arriving. s.Problems and s.Findings must be filled in, see [Judge].
func VerdictOf(s Status) Verdict {
	v := Verdict{Level: LevelOK}
	raise := func(level string, code int) {
		if v.Level == LevelOK || level == SeverityError {
			v.Level = level
		}
		if v.ExitCode != ExitTarget {
			v.ExitCode = code
		}
	}
	for _, p := range s.Problems {
		switch {
		case p.Severity == SeverityNote:
		case strings.HasPrefix(p.Subject, "target "):
			raise(p.Severity, ExitTarget)
		default:
			raise(p.Severity, ExitAttention)
		}
	}
	c := countTargets(s)
	if c.good < c.live && !c.idleOnly() {
		raise(SeverityWarning, ExitTarget)
	}
	if c.good == 0 && len(c.first) == 0 && (c.live == 0 || !justStarted(s)) {
		raise(SeverityWarning, ExitAttention) // no data is known to arrive
	}
	if !s.Running {
		v.Level, v.ExitCode = SeverityError, ExitNotRunning
	}
	v.Text = verdictText(s, c, v.Level)
	return v
}

// tally counts the configured targets by delivery.
type tally struct {
	live, good, idle, never int
	stuck, losing           []string      // names of targets that get nothing, and of those that lose samples, the worst first
	first                   []string      // names of the idle ones whose first samples are on their way
	worst                   time.Duration // the longest delay of the others
	pending, missed         uint64        // samples
	gone                    Undelivered
}

// idleOnly reports whether every target without a good state had no data to get yet.
func (c tally) idleOnly() bool { return c.good+c.idle == c.live }

func countTargets(s Status) (c tally) {
	for _, t := range worstFirst(s) {
		c.pending = max(c.pending, t.PendingSamples)
		if t.State == StateOrphan {
			continue
		}
		c.live++
		of, _ := lossesOf(s, t.Name)
		c.gone = c.gone.Plus(of)
		switch d := deliveryOf(s, t); d {
		case Delivering:
			c.good++
		case DeliveryIdle:
			switch {
			case awaitsFirst(s, t):
				c.first = append(c.first, t.Name)
				c.idle++
			case t.PendingSamples == 0:
				c.idle++
			}
		case DeliveryNever:
			c.never++
			c.stuck = append(c.stuck, t.Name)
		case DeliveryHeld:
			c.stuck = append(c.stuck, t.Name)
		case DeliveryLosing:
			c.losing = append(c.losing, t.Name)
		}
		switch {
		case t.State == StateBehind && t.MissedSamples > 0 && !triesFirst(s, t):
			c.missed += t.MissedSamples
			continue
		case triesFirst(s, t), t.State == StateHeld, t.State == StateRetrying, t.State == StatePaused, t.State == StateStopped:
			if !slices.Contains(c.stuck, t.Name) {
				c.stuck = append(c.stuck, t.Name)
			}
		}
		c.worst = max(c.worst, Seconds(t.LagSeconds))
	}
	of, _ := lossesOf(s, "")
	c.gone = c.gone.Plus(of)
	return c
}

// worstFirst returns the targets in the order of their worst problems.
func worstFirst(s Status) []TargetStatus {
	place := make(map[string]int, len(s.Problems))
	for i, p := range s.Problems { // the worst come first
		if _, ok := place[p.Subject]; !ok {
			place[p.Subject] = i
		}
	}
	of := func(t TargetStatus) int {
		if i, ok := place["target "+t.Name]; ok {
			return i
		}
		return len(s.Problems)
	}
	return slices.SortedStableFunc(slices.Values(s.Targets), func(a, b TargetStatus) int { return cmp.Compare(of(a), of(b)) })
}

// verdictText returns the verdict in words.
func verdictText(s Status, c tally, level string) string {
	switch {
	case !s.Running:
		return "The agent is not running" + waitingText(c.pending)
	case s.WAL.Error != "":
		return "The log cannot be written: " + oneLine(logErrorEnd(s.WAL.Error)) + "; new samples are refused"
	case slices.ContainsFunc(s.Targets, dropsFuture):
		return "Samples are dropped: the receiver's clock and this host's differ too much"
	case c.live == 0:
		return "Samples are kept in the log; there is no target to send them to"
	case len(c.losing) > 0 && (c.gone.Lost > 0 || len(c.stuck) < c.live): // a receiver that takes nothing refuses nothing more
		said := "Samples are " + c.gone.going() + " so far, at " + someOf(c.losing)
		if words := lastWords(s, c.losing); c.gone.Lost == 0 && words != "" {
			said += ": " + oneLine(words)
		}
		return said
	case c.never == c.live && c.worst > 0 && c.worst <= late(s): // the first samples wait
		return "Nothing is delivered yet" + becauseOf(s, c.stuck) + waitingText(c.pending)
	case c.never == c.live:
		return "Nothing was ever delivered" + becauseOf(s, c.stuck) + waitingText(c.pending)
	case len(c.stuck) == c.live:
		because := becauseOf(s, c.stuck)
		behind := behindText(c.worst)
		if because != "" {
			behind = strings.Replace(behind, ",", ";", 1)
		}
		return "No data arrives" + because + behind + waitingText(c.pending)
	case len(c.stuck) > 0:
		return fmt.Sprintf("Data arrives at %d of %d targets; not at %s", c.live-len(c.stuck)-c.idle, c.live, someOf(c.stuck)) + becauseOf(s, c.stuck)
	case c.worst > late(s):
		return "Data arrives, up to " + Span(c.worst) + " late"
	case c.missed > 0:
		return "Fresh data arrives; " + Samples(c.missed) + " of a backlog follow"
	case s.WAL.Appended == 0 || c.idle == c.live:
		return beginning(s, c)
	case c.gone.Any() && !refusedUntil(s).IsZero():
		now := "data arrives again"
		if slices.ContainsFunc(s.Targets, func(t TargetStatus) bool { return t.State != StateOK && t.Unproven() }) {
			now = firstTry(s)
		}
		return Samples(c.gone.Refused) + " " + were(c.gone.Refused) + " refused until " + Clock(s.Now, refusedUntil(s)) + "; " + now + behindText(c.worst)
	case c.gone.Any():
		return "Data arrives" + behindText(c.worst) + "; " + c.gone.text(Samples) + " in the last 24 hours"
	case level != LevelOK:
		return "Data arrives" + behindText(c.worst) + "; " + firstFinding(s.Findings)
	case len(c.first) > 0:
		return "Data arrives; the first samples for " + someOf(c.first) + " are on their way"
	case c.worst <= 0:
		return "All data is delivered"
	case c.worst > max(shortestInterval(s), defaultInterval): // just after a start or an outage
		return "Data arrives" + behindText(c.worst)
	}
	return "All data arrives" + behindText(c.worst)
}

// beginning describes an agent that has collected or delivered nothing yet, and its worst problem.
func beginning(s Status, c tally) string {
	said := "Ready; nothing collected yet"
	if s.WAL.Appended == 0 && c.pending > 0 && slices.ContainsFunc(s.Targets, func(t TargetStatus) bool { return t.State == StateStarting }) {
		said = "Ready; " + onDisk(c.pending) + ", from before the restart; the first try is under way"
	} else if first := firstRound(s); first.After(s.Now) {
		said = "Ready; the first round of probes begins at " + Clock(s.Now, first)
	} else if len(c.first) > 0 {
		said = "Ready; the first samples are on their way"
	}
	if slices.ContainsFunc(s.Findings, func(f Finding) bool { return f.Severity != SeverityNote }) {
		said += "; " + firstFinding(s.Findings)
	}
	return said
}

// firstRound returns when the first round of any probe begins; zero if one has begun, or if that is unknown.
func firstRound(s Status) (first time.Time) {
	for _, p := range s.Probes {
		switch {
		case !p.LastRun.IsZero():
			return time.Time{}
		case first.IsZero() || p.FirstRun.Before(first):
			first = p.FirstRun
		}
	}
	return first
}

// maxCause bounds the characters of a cause in a verdict, which is one line. The finding has it in full.
const maxCause = 120

func oneLine(text string) string {
	return Plain(Cut(strings.Join(strings.Fields(text), " "), maxCause))
}

// becauseOf returns a colon and why the targets with these names accept nothing, if that is the same for all of them.
func becauseOf(s Status, names []string) string {
	cause := ""
	for _, t := range s.Targets {
		if !slices.Contains(names, t.Name) {
			continue
		}
		b, ok := stuck(s, t)
		its := b.cause
		if len(names) > 1 {
			its = impersonal(its, t.URL)
		}
		switch {
		case t.State == StatePaused:
			its = "paused"
		case !ok && t.Credentials != "":
			its = t.Credentials
		}
		if its == "" || cause != "" && cause != its {
			return ""
		}
		cause = its
	}
	if cause == "" {
		return ""
	}
	return ": " + oneLine(cause)
}

// lastWords returns with which words a receiver refused the newest sample, if all the names are of one target.
func lastWords(s Status, names []string) string {
	for _, t := range s.Targets {
		if len(names) == 1 && t.Name == names[0] {
			return refusal(t)
		}
	}
	return ""
}

// firstFinding names the worst finding, and how many others are a problem too.
func firstFinding(all []Finding) string {
	all = slices.DeleteFunc(slices.Clone(all), func(f Finding) bool { return f.Severity == SeverityNote })
	if len(all) == 0 {
		return "something needs attention"
	}
	f := all[0]
	said := strings.TrimSpace(strings.Replace(f.Kind, "config", "configuration", 1)+" "+someOf(f.Names)) + ": " + cmp.Or(f.Cause, f.Text)
	if n := len(all) - 1; n > 0 {
		return oneLine(said) + " (and " + text.Counted(n, "more problem") + ")"
	}
	return oneLine(said)
}

// someOf formats names for one line.
func someOf(names []string) string {
	const most = 4
	if len(names) <= most+1 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func behindText(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	return ", " + Span(d) + " behind"
}

func waitingText(n uint64) string {
	if n == 0 {
		return ""
	}
	return "; " + onDisk(n)
}
