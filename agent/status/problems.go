package status

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hwsagent/internal/text"
)

// The severities of a [Problem] and levels of a [Verdict], worst first. A note is information, such as a sample lost
// last week; it does not change the verdict.
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

// Bounds beyond which a condition needs attention.
const (
	skewWarn = 30 * time.Second // receivers refuse samples too far from their own clock
	fillWarn = 0.8              // undelivered data, as a part of the log's budget
	freeWarn = 2                // free space, as a multiple of min_free_bytes
)

// tryProbe is the remedy for a probe that fails, or reads only in part.
const tryProbe = "`hwsagent check --probe " + nameHere + "` runs it once and says what to do"

// Problems returns the present and coming problems that a person must solve, derived from the other fields of s, worst
// first; never nil. It is pure: the time is s.Now.
func Problems(s Status) []Problem {
	all := append([]Problem{}, slices.Concat(configProblems(s), logProblems(s), roomProblems(s), clockProblems(s))...)
	for _, t := range s.Targets {
		all = append(all, targetProblems(s, t)...)
	}
	all = append(all, lossProblems(s)...) // behind the reason why a target accepts nothing now
	for _, p := range s.Probes {
		if RefusedByLog(s, p) {
			continue // the log's problem says why
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
	slices.SortStableFunc(all, func(a, b Problem) int { return cmp.Compare(Rank(a.Severity), Rank(b.Severity)) })
	return all
}

func configProblems(s Status) []Problem {
	var all []Problem
	if u := s.Config.Underway; u != "" {
		all = append(all, Problem{SeverityError, "config", u + ". Until it ends, no other reload and no command that changes a target can begin",
			"look at the file, disk or host that is named; restart the agent if it no longer answers"})
	}
	if s.Config.ReloadError == "" {
		return all
	}
	return append(all, Problem{SeverityError, "config",
		fmt.Sprintf("the reload at %s failed and changed nothing; the configuration loaded at %s stays in force. %s",
			Clock(s.Now, s.Config.ReloadedAt), Clock(s.Now, s.Config.LoadedAt), firstMistake(s.Config)),
		"correct " + s.Config.File + ", check it with `hwsagent check --no-network`, and reload"})
}

// logFails begins the problem of a log that cannot be written.
const logFails = "the log cannot be written"

func logProblems(s Status) []Problem {
	var all []Problem
	w := s.WAL
	if w.Error != "" {
		text := logFails
		if !w.ErrorSince.IsZero() {
			text += " since " + Clock(s.Now, w.ErrorSince)
		}
		all = append(all, Problem{SeverityError, "log", fmt.Sprintf("%s: %s. New samples are refused meanwhile (%s so far)", text, w.Error, Samples(w.Refused)),
			tryLog(w) + "; the agent then resumes"})
	}
	return all
}

// tryLog returns how the log can be written again.
func tryLog(w WALStatus) string {
	switch logErrorEnd(w.Error) {
	case "permission denied", "Access is denied.":
		return "let the agent's user write to " + filepath.Join(w.Dir, "wal")
	}
	return "make room or repair the file system at " + w.Dir
}

// logErrorEnd returns the cause in an error of the log, without the segment, which varies.
func logErrorEnd(text string) string {
	if i := strings.LastIndex(text, ": "); i >= 0 {
		return text[i+len(": "):]
	}
	return text
}

// targetProblems returns the problems of a target: those of its state first.
func targetProblems(s Status, t TargetStatus) []Problem {
	var all []Problem
	add := func(severity, text, try string) {
		all = append(all, Problem{severity, "target " + t.Name, text, try})
	}
	if b, ok := stuck(s, t); ok {
		all = append(all, b.problem("target", t.Name))
	}
	stateProblems(s, t, add)
	if !t.Ledger.Balanced && (t.Ledger.Appended > 0 || t.Ledger.Delivered > 0) {
		add(SeverityError, "its account of samples does not add up", "report it with the output of `hwsagent status --json`")
	}
	if reported, _ := lossesOf(s, t.Name); t.Ledger.Lost > reported.Lost+reported.Refused {
		add(SeverityNote, AtMost(t.LostAtMost)+Samples(t.Ledger.Lost)+" did not arrive since the target was added: "+reasons(t.Ledger.Dropped), "")
	}
	if t.DeadLetters > 0 {
		add(SeverityNote, letters(t), "")
	}
	for _, q := range t.Muted {
		add(muted(s.Now, q))
	}
	if t.Credentials != "" && !strings.HasPrefix(t.Failure, "file_") { // else the target's own finding says it
		try := "create or correct the file that is named; no reload is needed"
		if !t.LastSuccess.IsZero() {
			try += ". Until then the agent sends with the contents that it has read before"
		}
		add(SeverityWarning, "its credential files cannot be used: "+text.FirstLine(t.Credentials), try)
	}
	if t.Tenants != nil && len(t.Tenants.Strangers) > 0 {
		add(strangers(t.Tenants))
	}
	all = append(all, expiryProblems(s, t)...)
	all = append(all, skewProblems(s.Now, t)...)
	return all
}

// letters counts the dead letters of t. One may stand for several samples.
func letters(t TargetStatus) string {
	refused, unconfirmed := t.Ledger.Dropped[ReasonRejected], t.Ledger.Dropped[reasonUnconfirmed]
	kind := " refused"
	if unconfirmed > 0 {
		kind += " or " + reasonUnconfirmed
	}
	return text.Counted(t.DeadLetters, "dead letter") + ", for " + Samples(refused+unconfirmed) + kind + " since the target was added"
}

// stateProblems adds the problems that follow from the state of a target, except those of [stuck].
func stateProblems(s Status, t TargetStatus, add func(severity, text, try string)) {
	lag := Seconds(t.LagSeconds)
	switch t.State {
	case StateHeld, StateRetrying, StatePaused:
	case StateStopped:
		if !s.Running && !t.PausedSince.IsZero() {
			add(SeverityNote, fmt.Sprintf("is paused since %s, and stays so when the agent runs again", Clock(s.Now, t.PausedSince)), "hwsagent targets resume "+t.Name)
		}
		if s.Running {
			add(SeverityError, "does not run: "+Why(t), "correct that; the agent tries again")
		} else if t.Why != "" {
			add(SeverityError, t.Why, "")
		}
	case StateOrphan:
		level := SeverityNote
		if t.PendingSamples > 0 {
			level = SeverityWarning
		}
		add(level, fmt.Sprintf("is %s; %s wait for it", Why(t), Samples(t.PendingSamples)),
			"hwsagent targets adopt "+t.Name+" NEW, if it has another name now; hwsagent targets drop "+t.Name+" --yes, if its data is no longer needed")
	default:
		if triesFirst(s, t) {
			return // see stuck
		}
		if t.MissedSamples > 0 {
			add(SeverityWarning, missed(s, t), "")
		} else if lag > late(s) {
			text := fmt.Sprintf("%s behind, %s to go at %s", Span(lag), Samples(t.PendingSamples), Rate(t.SentPerSec))
			if gain := t.SentPerSec - s.WAL.SamplesPerSec; gain > 0 {
				text += "; caught up in about " + Span(Seconds(float64(t.PendingSamples)/gain))
			} else {
				text += "; not catching up"
			}
			add(SeverityWarning, text, "")
		} else if s.Running && !awaitsFirst(s, t) && t.Ledger.Delivered == 0 && t.Ledger.Appended > t.Ledger.Filtered {
			add(SeverityWarning, waiting(s, t), "wait for the first request; `hwsagent check` shows each step to the receiver")
		}
		if t.Why != "" && t.MissedSamples == 0 {
			add(SeverityNote, Brief(t, t.Why), "")
		}
	}
}

// waiting returns the cost of a target that accepts nothing.
func waiting(s Status, t TargetStatus) string {
	text := "nothing is lost; " + onDisk(t.PendingSamples)
	if t.Ledger.Dropped["budget"] > 0 || s.WAL.Error != "" {
		text = onDisk(t.PendingSamples)
	}
	if room := Room(s, t); room != "" {
		text += ", with " + room + " at this rate"
	}
	if neverDelivered(s, t) {
		text += "; it has never received any data"
	}
	return text
}

// neverDelivered reports whether a target had data to get, but received none since it was first known.
func neverDelivered(s Status, t TargetStatus) bool {
	return deliveryOf(s, t) != DeliveryIdle && t.Ledger.Delivered == 0 && t.Ledger.Appended > t.Ledger.Filtered
}

// stuck returns the trouble of a target that accepts nothing. Its words and remedy are those of the failure.
func stuck(s Status, t TargetStatus) (trouble, bool) {
	const look = "`hwsagent targets test " + nameHere + "` shows each step to the receiver; delivery resumes when it accepts data"
	switch t.State {
	case StateHeld, StateRetrying:
		return trouble{downSeverity(s, t), Why(t) + ended(s, t), downSince(s, t) + "; " + waiting(s, t), cmp.Or(t.Try, look)}, true
	case StateStarting, StateBehind, StateOK:
		if triesFirst(s, t) {
			b := trouble{SeverityWarning, firstTry(s), waiting(s, t), "wait for its answer; " + look}
			if !t.DownSince.IsZero() {
				b.severity, b.cost = downSeverity(s, t), downSince(s, t)+"; "+b.cost
			}
			return b, true
		}
	case StatePaused:
		return trouble{SeverityWarning, "is paused: nothing is sent", "Paused since " + Clock(s.Now, t.PausedSince) + "; " + waiting(s, t), "hwsagent targets resume " + nameHere}, true
	}
	return trouble{}, false
}

// missed reports a backlog that is sent beside fresh samples.
func missed(s Status, t TargetStatus) string {
	text := "fresh samples arrive; a backlog of " + Samples(t.MissedSamples)
	if !t.OldestPending.IsZero() {
		text += " since " + Clock(s.Now, t.OldestPending)
	}
	if t.Why != "" {
		return text + " waits: " + Brief(t, t.Why)
	}
	return text + " follows beside it"
}

// Why returns in one line why a target accepts nothing: the reason given by the target itself, or else its last error.
func Why(t TargetStatus) string {
	switch {
	case t.Why != "":
		return Brief(t, t.Why)
	case t.LastError != "":
		return Brief(t, t.LastError)
	}
	return "reason unknown"
}

// Brief returns the first line of an error of t, without the URL, which is shown beside it.
func Brief(t TargetStatus, why string) string {
	return text.FirstLine(strings.TrimPrefix(why, "post to "+t.URL+": "))
}

// firstMistake returns the first mistake for which a reload failed, and how many others there are.
func firstMistake(c ConfigStatus) string {
	line, rest, _ := strings.Cut(strings.TrimSpace(c.ReloadError), "\n")
	switch more := c.ReloadMistakes - 1; {
	case more == 1:
		return line + " (and 1 more mistake)"
	case more > 1:
		return fmt.Sprintf("%s (and %d more mistakes)", line, more)
	case more < 0 && rest != "":
		return line + " …"
	}
	return line
}

func reasons(dropped map[string]uint64) string {
	var parts []string
	for reason, n := range dropped {
		if reason == ReasonRejected {
			reason = "refused"
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", Count(n), strings.ReplaceAll(reason, "_", " ")))
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
	if b, ok := failing(p); ok {
		all = append(all, b.problem("probe", p.Name))
	}
	switch p.State {
	case "hung":
		all = append(all, Problem{SeverityWarning, subject, "hangs; other probes are not affected", "look at the device or file system that it reads"})
	case "ok":
		if p.LastError != "" {
			all = append(all, Problem{SeverityNote, subject, text.FirstLine(p.LastError), strings.ReplaceAll(tryProbe, nameHere, p.Name)})
		}
	}
	if p.Refused > 0 {
		all = append(all, Problem{SeverityNote, subject, Samples(p.Refused) + " were invalid or refused by the log", ""})
	}
	return all
}

// RefusedByLog reports whether a probe works, but the log does not take its samples.
func RefusedByLog(s Status, p ProbeStatus) bool {
	return p.State == "failing" && s.WAL.Error != "" && strings.Contains(p.LastError, logErrorEnd(s.WAL.Error))
}

// failing returns the trouble of a probe whose rounds fail.
func failing(p ProbeStatus) (trouble, bool) {
	if p.State != "failing" {
		return trouble{}, false
	}
	times := "once"
	if p.Failures > 1 {
		times = fmt.Sprintf("%d times in a row", p.Failures)
	}
	return trouble{SeverityWarning, fmt.Sprintf("failed %s: %s", times, text.FirstLine(p.LastError)), "", tryProbe}, true
}
