package web

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Verdict answers "is my data arriving" in one line. Page, JSON, command line and its exit code
// show this one value.
type Verdict struct {
	Level string `json:"level"` // ok, warning, error
	Text  string `json:"text"`

	// ExitCode is what `hwsagent status` exits with: one of the Exit constants.
	ExitCode int `json:"exit_code"`
}

// The exit codes of `hwsagent status` for an agent that answers, and for one that does not run.
const (
	ExitAllWell    = 0
	ExitTarget     = 4 // a target is not well
	ExitAttention  = 5 // something else needs a person
	ExitNotRunning = 7
)

// What becomes of a target's data. Only [Delivering] is good.
const (
	Delivering     = "delivering"
	DeliveryNever  = "never_delivered" // something was to be sent, and nothing has arrived since the target was first known
	DeliveryBehind = "behind"          // something waits for longer than it should, or the last request failed
	DeliveryHeld   = "held"            // nothing is sent until a cause is gone
	DeliveryLosing = "losing"          // samples were lost in the last minutes
	DeliveryLost   = "lost"            // samples were lost in the last 24 hours, and no person has acknowledged it
	DeliveryPaused = "paused"          // a person wants nothing to be sent
	DeliveryIdle   = "unknown"         // nothing was to be sent yet, or what waits is of unknown age, or the agent does not run
)

// Bounds of the verdict.
const (
	// grace is how long a sample may wait beyond its interval: for a batch to fill, a request and
	// a savepoint.
	grace = 30 * time.Second

	// defaultInterval is the default of global.scrape_interval: it counts where no input says how
	// often it brings samples.
	defaultInterval = 15 * time.Second

	// losingFor is for how long after a loss more is to be expected.
	losingFor = 5 * time.Minute

	// LossesFor is how long a loss stays a warning unless a person acknowledges it.
	LossesFor = 24 * time.Hour
)

// Judged returns s with what follows from its other fields: how long the log lasts, what becomes of each
// target's data, the problems and the verdict. It is pure: the time is s.Now.
func Judged(s Status) Status {
	s.Targets = slices.Clone(s.Targets)
	for i := range s.Targets {
		s.Targets[i].Delivery = deliveryOf(s, s.Targets[i])
	}
	if d, ok := Lasts(s); ok {
		s.WAL.LastsSeconds = d.Seconds()
	}
	s.Problems = Problems(s)
	s.Findings = findings(s)
	v := VerdictOf(s)
	s.Verdict = &v
	return s
}

// verdict is the verdict of s, also where it is read from an agent that did not send one.
func (s Status) verdict() Verdict {
	if s.Verdict != nil {
		return *s.Verdict
	}
	return VerdictOf(s)
}

// ExitCode is what `hwsagent status` exits with.
func (s Status) ExitCode() int { return s.verdict().ExitCode }

// late is how old a sample may be that waits while all is well: the shortest interval at which
// samples come, and grace. The shortest one, since what waits is not known to be of a slower input.
func late(s Status) time.Duration {
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
			if d, err := time.ParseDuration(t.Interval); err == nil { // of a day and more it is not the shortest
				take(d)
			}
		}
	}
	if shortest == 0 {
		shortest = defaultInterval
	}
	return shortest + grace
}

// deliveryOf says what becomes of t's data, the worst first.
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
	case arrived(l) == 0 && l.Appended > l.Filtered:
		return DeliveryNever
	case t.State == StateRetrying || t.MissedSamples > 0 || seconds(t.LagSeconds) > late(s):
		return DeliveryBehind
	case old > 0:
		return DeliveryLost
	case arrived(l) == 0 || t.PendingSamples > 0 && t.OldestPending.IsZero() && t.LagSeconds == 0:
		return DeliveryIdle
	}
	return Delivering
}

// arrived is how many samples the receiver is known to have taken.
func arrived(l LedgerStatus) uint64 { return l.Delivered + l.Dropped["resent"] }

// VerdictOf says whether the data is arriving. It expects s.Problems to be filled in, see
// [Judged].
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
	if c.good == 0 {
		raise(SeverityWarning, ExitAttention) // nothing is known to arrive
	}
	if !s.Running {
		v.Level, v.ExitCode = SeverityError, ExitNotRunning
	}
	v.Text = verdictText(s, c, v.Level)
	return v
}

// tally counts the targets that are configured by what becomes of their data.
type tally struct {
	live, good, idle, never int
	stuck, losing           []string      // names of those that get nothing, and that lose something
	worst                   time.Duration // how far the others are behind, at most
	pending, missed, lost   uint64        // samples
}

// idleOnly says that every target that is not well had nothing to get yet.
func (c tally) idleOnly() bool { return c.good+c.idle == c.live }

func countTargets(s Status) (c tally) {
	for _, t := range s.Targets {
		c.pending = max(c.pending, t.PendingSamples)
		if t.State == StateOrphan {
			continue
		}
		c.live++
		old, _ := lossesOf(s, t.Name)
		c.lost += old
		switch d := deliveryOf(s, t); d {
		case Delivering:
			c.good++
		case DeliveryIdle:
			if t.PendingSamples == 0 {
				c.idle++
			}
		case DeliveryNever:
			c.never++
			c.stuck = append(c.stuck, t.Name)
		case DeliveryLosing:
			c.losing = append(c.losing, t.Name)
		}
		switch {
		case t.State == StateBehind && t.MissedSamples > 0:
			c.missed += t.MissedSamples
			continue
		case t.State == StateHeld, t.State == StateRetrying, t.State == StatePaused, t.State == StateStopped:
			if !slices.Contains(c.stuck, t.Name) {
				c.stuck = append(c.stuck, t.Name)
			}
		}
		c.worst = max(c.worst, seconds(t.LagSeconds))
	}
	old, _ := lossesOf(s, "")
	c.lost += old
	return c
}

// verdictText is the verdict in words.
func verdictText(s Status, c tally, level string) string {
	switch {
	case !s.Running:
		return "The agent is not running" + waitingText(c.pending)
	case s.WAL.Error != "":
		return "The log cannot be written: new samples are refused"
	case slices.ContainsFunc(s.Targets, dropsFuture):
		return "Samples are dropped: the receiver's clock and this host's differ too much"
	case c.live == 0:
		return "Samples are kept in the log; there is no target to send them to"
	case len(c.losing) > 0:
		return fmt.Sprintf("Samples are being lost: %s so far, at %s", samples(c.lost), someOf(c.losing))
	case c.never == c.live:
		return "Nothing was ever delivered" + waitingText(c.pending)
	case len(c.stuck) == c.live:
		return "No data arrives" + behindText(c.worst) + waitingText(c.pending)
	case len(c.stuck) > 0:
		return fmt.Sprintf("Data arrives at %d of %d targets; not at %s", c.live-len(c.stuck), c.live, someOf(c.stuck))
	case c.worst > late(s):
		return "Data arrives, up to " + span(c.worst) + " late"
	case c.missed > 0:
		return "Fresh data arrives; " + samples(c.missed) + " of a backlog follow"
	case s.WAL.Appended == 0 || c.idle == c.live:
		return "Ready; nothing collected yet"
	case c.lost > 0:
		return "Data arrives" + behindText(c.worst) + "; " + samples(c.lost) + " were lost in the last 24 hours"
	case level != LevelOK:
		return "Data arrives" + behindText(c.worst) + "; something needs attention"
	case c.worst <= 0:
		return "All data is delivered"
	}
	return "All data arrives" + behindText(c.worst)
}

// someOf are names for one line.
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
	return ", " + span(d) + " behind"
}

func waitingText(n uint64) string {
	if n == 0 {
		return ""
	}
	return "; " + samples(n) + " wait on disk"
}
