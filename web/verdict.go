package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The severities of a [Problem] and levels of a [Verdict], worst first. A note is a fact
// to know, such as a sample lost last week; it does not change the verdict.
const (
	SeverityError   = "error"
	SeverityWarning = "warning"
	SeverityNote    = "note"
	LevelOK         = "ok"
)

// The states of a target, see [TargetStatus].
const (
	StateOK       = "ok"
	StateBehind   = "behind"
	StateRetrying = "retrying"
	StateHeld     = "held"
	StatePaused   = "paused"
	StateStarting = "starting"
	StateOrphan   = "orphan"
	StateStopped  = "stopped"
)

// Bounds beyond which something is worth a person's attention.
const (
	lagWarn  = time.Minute      // a target that keeps up lags a few seconds
	lagError = 15 * time.Minute // of a target that takes nothing
	skewWarn = 30 * time.Second // receivers refuse samples too far from their own clock
	fillWarn = 0.8              // of the log's budget, taken by undelivered data
)

// Verdict answers "is my data arriving" in one line.
type Verdict struct {
	Level string `json:"level"` // ok, warning, error
	Text  string `json:"text"`
}

// Problems is what needs a person, or will, as far as it can be told from the other
// fields of s, worst first; never nil. It is pure: the time is s.Now.
func Problems(s Status) []Problem {
	all := append(append(append([]Problem{}, configProblems(s)...), logProblems(s)...), clockProblems(s)...)
	for _, t := range s.Targets {
		all = append(all, targetProblems(s, t)...)
	}
	for _, p := range s.Probes {
		if p.State == "failing" && s.WAL.Error != "" && strings.Contains(p.LastError, logErrorEnd(s.WAL.Error)) {
			continue // it reads well; that the log does not take it is told
		}
		all = append(all, probeProblems(p)...)
	}
	for _, j := range s.Scrape {
		all = append(all, scrapeProblems(j)...)
	}
	all = append(all, inputProblems(s)...)
	for _, r := range s.Receivers {
		all = append(all, receiverProblems(s, r)...)
	}
	if s.Running && len(s.Targets) == 0 {
		all = append(all, Problem{SeverityWarning, "config", "no targets are configured: samples go into the log and nowhere else",
			"add an entry under remote_write: and reload"})
	}
	slices.SortStableFunc(all, func(a, b Problem) int { return cmp.Compare(severity(a.Severity), severity(b.Severity)) })
	return all
}

func severity(s string) int {
	return slices.Index([]string{SeverityError, SeverityWarning, SeverityNote}, s)
}

func configProblems(s Status) []Problem {
	var all []Problem
	if u := s.Config.Underway; u != "" {
		all = append(all, Problem{SeverityError, "config", u + ". Until that ends no other reload begins, nor a command that changes a target",
			"look at the file, disk or host that is named; restart the agent if it does not answer any more"})
	}
	if s.Config.ReloadError == "" {
		return all
	}
	return append(all, Problem{SeverityError, "config",
		fmt.Sprintf("the reload at %s failed and changed nothing; what was loaded at %s is in force. %s",
			clock(s.Now, s.Config.ReloadedAt), clock(s.Now, s.Config.LoadedAt), more(s.Config.ReloadError)),
		"correct " + s.Config.File + ", look with `hwsagent check --no-network`, reload"})
}

func logProblems(s Status) []Problem {
	var all []Problem
	w := s.WAL
	if w.Error != "" {
		text := "the log cannot be written"
		if !w.ErrorSince.IsZero() {
			text += " since " + clock(s.Now, w.ErrorSince)
		}
		all = append(all, Problem{SeverityError, "wal", fmt.Sprintf("%s: %s. What is collected meanwhile is refused (%s so far)", text, w.Error, samples(w.Refused)),
			"make room or repair the file system at " + w.Dir + "; the agent goes on by itself"})
	}
	for _, t := range s.Targets {
		if w.MaxBytes > 0 && float64(t.PendingBytes) >= fillWarn*float64(w.MaxBytes) {
			text := fmt.Sprintf("%s of the log's %s wait for %s", size(t.PendingBytes), size(w.MaxBytes), t.Name)
			if d, ok := FullIn(s, t); ok {
				text += "; it is full in about " + span(d)
			}
			all = append(all, Problem{SeverityError, "wal", text + "; then the oldest samples are dropped",
				"bring the target back, or raise wal.max_bytes and reload"})
			break
		}
	}
	return all
}

// logErrorEnd is the cause in an error of the log, without the segment, which changes.
func logErrorEnd(text string) string {
	if i := strings.LastIndex(text, ": "); i >= 0 {
		return text[i+len(": "):]
	}
	return text
}

// FullIn estimates when what waits for t fills the log at the present rate of samples.
// It knows nothing where nothing waits or the target takes data.
func FullIn(s Status, t TargetStatus) (time.Duration, bool) {
	stuck := t.State == StateHeld || t.State == StateRetrying || t.State == StatePaused
	if !stuck || t.PendingSamples == 0 || t.PendingBytes <= 0 || s.WAL.SamplesPerSec <= 0 || s.WAL.MaxBytes <= t.PendingBytes {
		return 0, false
	}
	perSecond := s.WAL.SamplesPerSec * float64(t.PendingBytes) / float64(t.PendingSamples)
	return seconds(float64(s.WAL.MaxBytes-t.PendingBytes) / perSecond), true
}

func targetProblems(s Status, t TargetStatus) []Problem {
	var all []Problem
	add := func(severity, text, try string) {
		all = append(all, Problem{severity, "target " + t.Name, text, try})
	}
	lag := seconds(t.LagSeconds)
	waiting := fmt.Sprintf("nothing is lost; %s wait on disk", samples(t.PendingSamples))
	if t.Ledger.Dropped["budget"] > 0 || s.WAL.Error != "" {
		waiting = samples(t.PendingSamples) + " wait on disk"
	}
	switch t.State {
	case StateHeld:
		add(SeverityError, fmt.Sprintf("the receiver does not let the data in: %s. Held for %s; %s", why(t), span(lag), waiting), tryHeld(t))
	case StateRetrying:
		level := SeverityWarning
		if lag > lagError {
			level = SeverityError
		}
		add(level, fmt.Sprintf("no delivery: %s. %s behind; %s", why(t), span(lag), waiting),
			"the agent keeps trying by itself; `hwsagent check` shows each step to the receiver")
	case StatePaused:
		add(SeverityWarning, fmt.Sprintf("is paused since %s: nothing is sent; %s", clock(s.Now, t.PausedSince), waiting), "hwsagent targets resume "+t.Name)
	case StateStopped:
		if !s.Running && !t.PausedSince.IsZero() {
			add(SeverityNote, fmt.Sprintf("is paused since %s, and stays so when the agent runs again", clock(s.Now, t.PausedSince)), "hwsagent targets resume "+t.Name)
		}
		if s.Running {
			add(SeverityError, "does not run: "+why(t), "correct that; the agent tries again by itself")
		} else if t.Why != "" {
			add(SeverityError, t.Why, "")
		}
	case StateOrphan:
		add(SeverityNote, fmt.Sprintf("is %s; %s wait for it", why(t), samples(t.PendingSamples)),
			"hwsagent targets adopt "+t.Name+" NEW, if it has another name now; hwsagent targets drop "+t.Name+", if nobody wants them")
	default:
		if t.MissedSamples > 0 {
			add(SeverityWarning, missed(s, t), "")
		} else if lag > lagWarn {
			text := fmt.Sprintf("%s behind, %s to go at %s", span(lag), samples(t.PendingSamples), rate(t.SentPerSec))
			if gain := t.SentPerSec - s.WAL.SamplesPerSec; gain > 0 {
				text += "; caught up in about " + span(seconds(float64(t.PendingSamples)/gain))
			} else {
				text += "; not catching up"
			}
			add(SeverityWarning, text, "")
		}
		if t.Why != "" && t.MissedSamples == 0 {
			add(SeverityNote, brief(t, t.Why), "")
		}
	}
	if !t.Ledger.Balanced && (t.Ledger.Appended > 0 || t.Ledger.Delivered > 0) {
		add(SeverityError, "its account of samples does not add up", "report it with the output of `hwsagent status --json`")
	}
	if t.Ledger.Lost > 0 {
		add(SeverityNote, samples(t.Ledger.Lost)+" lost since it was first known: "+reasons(t.Ledger.Dropped), "")
	}
	if t.DeadLetters > 0 {
		add(SeverityNote, fmt.Sprintf("%s refused by the receiver and kept as dead letters", samples(uint64(t.DeadLetters))), "")
	}
	if t.Credentials != "" {
		add(SeverityWarning, "its credential files cannot be used: "+firstLine(t.Credentials), "correct the file: it is read again by itself; until then what it held before is used, if it was good at the start")
	}
	if t.Tenants != nil && len(t.Tenants.Strangers) > 0 {
		add(strangers(t.Tenants))
	}
	all = append(all, expiryProblems(s, t)...)
	all = append(all, skewProblems(s.Now, t)...)
	return all
}

// missed tells of a backlog beside what is fresh.
func missed(s Status, t TargetStatus) string {
	text := "what is fresh arrives; a backlog of " + samples(t.MissedSamples)
	if !t.OldestPending.IsZero() {
		text += " since " + clock(s.Now, t.OldestPending)
	}
	if t.Why != "" {
		return text + " waits: " + brief(t, t.Why)
	}
	return text + " follows beside it"
}

// why is the reason that a target itself gives, or its last error.
func why(t TargetStatus) string {
	switch {
	case t.Why != "":
		return brief(t, t.Why)
	case t.LastError != "":
		return brief(t, t.LastError)
	}
	return "reason unknown"
}

// brief is the first line of what happened at t, without the URL that stands beside it.
func brief(t TargetStatus, text string) string {
	return firstLine(strings.TrimPrefix(text, "post to "+t.URL+": "))
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return strings.TrimSuffix(strings.TrimSpace(line), ".")
}

// more is the first line of s, with a mark if there are others.
func more(s string) string {
	line, rest, _ := strings.Cut(strings.TrimSpace(s), "\n")
	if rest != "" {
		line += " …"
	}
	return line
}

// tryHeld is what to do about a target that is held.
func tryHeld(t TargetStatus) string {
	if t.AwaitsClock {
		return tryClock + ", the receiver's or this host's: the one that is wrong"
	}
	return cmp.Or(t.Try, "`hwsagent check` shows each step to the receiver; delivery goes on by itself when it lets data in")
}

func reasons(dropped map[string]uint64) string {
	var parts []string
	for reason, n := range dropped {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", count(n), strings.ReplaceAll(reason, "_", " ")))
		}
	}
	slices.Sort(parts)
	if len(parts) == 0 {
		return "reason unknown"
	}
	return strings.Join(parts, ", ")
}

func probeProblems(p ProbeStatus) []Problem {
	subject := "probe " + p.Name
	var all []Problem
	switch p.State {
	case "failing":
		times := "once"
		if p.Failures > 1 {
			times = fmt.Sprintf("%d times in a row", p.Failures)
		}
		all = append(all, Problem{SeverityWarning, subject, fmt.Sprintf("failed %s: %s", times, firstLine(p.LastError)),
			"`hwsagent probe " + p.Name + "` runs it once and shows what it reads"})
	case "hung":
		all = append(all, Problem{SeverityWarning, subject, "hangs and does not come back; the others are not affected", "look at the device or mount that it reads"})
	case "ok":
		if p.LastError != "" {
			all = append(all, Problem{SeverityNote, subject, firstLine(p.LastError), "`hwsagent probe " + p.Name + "` runs it once and shows what it reads"})
		}
	}
	if p.Refused > 0 {
		all = append(all, Problem{SeverityNote, subject, samples(p.Refused) + " were invalid or refused by the log", ""})
	}
	return all
}

// VerdictOf says whether the data is arriving. It expects
// s.Problems to be filled in, see [Problems].
func VerdictOf(s Status) Verdict {
	level := LevelOK
	for _, p := range s.Problems {
		if p.Severity == SeverityError || p.Severity == SeverityWarning && level == LevelOK {
			level = p.Severity
		}
	}
	worst, pending, missed := time.Duration(0), uint64(0), uint64(0)
	var stuck []string
	live := 0
	for _, t := range s.Targets {
		pending = max(pending, t.PendingSamples)
		if t.State == StateOrphan {
			continue
		}
		live++
		if t.State == StateBehind && t.MissedSamples > 0 {
			missed += t.MissedSamples
			continue
		}
		worst = max(worst, seconds(t.LagSeconds))
		if t.State == StateHeld || t.State == StateRetrying || t.State == StatePaused || t.State == StateStopped {
			stuck = append(stuck, t.Name)
		}
	}
	switch {
	case !s.Running:
		return Verdict{SeverityError, "The agent is not running" + waitingText(pending)}
	case s.WAL.Error != "":
		return Verdict{SeverityError, "The log cannot be written: new samples are refused"}
	case slices.ContainsFunc(s.Targets, dropsFuture):
		return Verdict{level, "Samples are dropped: the receiver's clock and this host's differ too much"}
	case len(stuck) == live && live > 0:
		return Verdict{level, "No data arrives" + behindText(worst) + waitingText(pending)}
	case len(stuck) > 0:
		return Verdict{level, fmt.Sprintf("Data arrives at %d of %d targets; not at %s", live-len(stuck), live, strings.Join(stuck, ", "))}
	case live == 0:
		return Verdict{level, "Samples are kept in the log; there is no target to send them to"}
	case worst > lagWarn:
		return Verdict{level, "Data arrives, up to " + span(worst) + " late"}
	case missed > 0:
		return Verdict{level, "Fresh data arrives; " + samples(missed) + " of a backlog follow"}
	case s.WAL.Appended == 0:
		return Verdict{level, "Ready; nothing collected yet"}
	case level != LevelOK:
		return Verdict{level, arrivesText(worst) + "; something needs attention"}
	}
	return Verdict{level, arrivesText(worst)}
}

// arrivesText is of targets that all keep up.
func arrivesText(d time.Duration) string {
	if d <= 0 {
		return "All data is delivered"
	}
	return "All data arrives, " + span(d) + " behind"
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
