package status

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"hwsagent/internal/text"
)

// trouble says why a target or a probe does not work. Its parts are separate so that several with the same cause can
// share one text.
type trouble struct {
	severity string
	cause    string // what and why
	cost     string // since when, and how much waits; empty: in the cause
	try      string // what to do; nameHere stands for the name
}

// nameHere stands in a [trouble] for the name of the target or probe.
const nameHere = "NAME"

// problem returns the trouble of one target or probe.
func (t trouble) problem(kind, name string) Problem {
	p := Problem{t.severity, kind + " " + name, t.cause, strings.ReplaceAll(t.try, nameHere, name)}
	if t.cost != "" {
		p.Text += ". " + t.cost
	}
	return p
}

// Finding is one or several problems with the same cause, and their names.
type Finding struct {
	Severity string   `json:"severity"`
	Kind     string   `json:"kind"`            // target, probe, config, …; in the plural if there are several names
	Names    []string `json:"names,omitempty"` // none if the kind is enough
	Text     string   `json:"text"`
	Tries    []Advice `json:"tries,omitempty"`

	// Cause is the part of Text that says what and why. Since is when the first of them began; zero: unknown.
	Cause string    `json:"-"`
	Since time.Time `json:"-"`
}

// Advice is a remedy; For lists the names that it concerns, empty if all.
type Advice struct {
	For  string `json:"for,omitempty"`
	Text string `json:"text"`
}

// Piece is a part of an advice: text, or a command to type.
type Piece struct {
	Text    string
	Command bool
}

// Pieces splits the advice. A command stands between backticks; an unmatched backtick counts as text.
func (a Advice) Pieces() (all []Piece) {
	rest := a.Text
	for {
		before, inner, opened := strings.Cut(rest, "`")
		command, after, closed := strings.Cut(inner, "`")
		if !opened || !closed {
			return append(all, Piece{Text: rest})
		}
		all = append(all, Piece{Text: before}, Piece{Text: command, Command: true})
		rest = after
	}
}

// Thing returns the kind in the singular, also if there are several names.
func (f Finding) Thing() string {
	if len(f.Names) > 1 {
		return strings.TrimSuffix(f.Kind, "s")
	}
	return f.Kind
}

// member is a problem with the fields that are needed to merge it with others.
type member struct {
	problem    Problem
	kind, name string
	key        string // equal if the cause is equal
	plain      string // the cause of this one
	cause      string // without the parts that differ between members
	try        string // likewise
	target     TargetStatus
	loss       LossStatus
	since      time.Time // zero: unknown
	join       func(s Status, all []member) string
}

// Findings returns the problems, worst first, with those of equal cause merged.
func Findings(s Status) []Finding {
	known := members(s)
	var order []string
	groups := map[string][]member{}
	for _, p := range s.Problems {
		kind, name, _ := strings.Cut(p.Subject, " ")
		m, ok := known[p]
		if !ok {
			m = member{plain: causeOf(s, kind, p), since: sinceOf(s, kind, name), key: p.Severity + "\x00" + p.Text + "\x00" + p.Try, join: func(_ Status, all []member) string { return all[0].problem.Text }}
		}
		m.problem, m.kind, m.name = p, kind, name
		key := kind + "\x00" + m.key
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], m)
	}
	all := make([]Finding, 0, len(order))
	for _, key := range order {
		all = append(all, newFinding(s, groups[key]))
	}
	return all
}

// maxNames bounds how many names of a finding are spelled out.
const maxNames = 12

// subject describes the names of the finding.
func (f Finding) subject() string {
	names := f.Names
	left := ""
	if len(names) > maxNames {
		left = fmt.Sprintf(" and %d more", len(names)-maxNames)
		names = names[:maxNames]
	}
	return strings.TrimSpace(f.Kind + " " + strings.Join(names, ", ") + left)
}

// newFinding merges the problems of a group; the first one is the worst.
func newFinding(s Status, group []member) Finding {
	first := group[0]
	f := Finding{Severity: first.problem.Severity, Kind: first.kind, Text: first.problem.Text}
	var whom [][]string // names for each advice
	for _, m := range group {
		if f.Since.IsZero() || !m.since.IsZero() && m.since.Before(f.Since) {
			f.Since = m.since
		}
		if m.name != "" && !slices.Contains(f.Names, m.name) {
			f.Names = append(f.Names, m.name)
		}
		try := m.problem.Try
		if len(group) > 1 && m.try != "" {
			try = impersonal(m.try, m.target.URL)
		}
		i := slices.IndexFunc(f.Tries, func(a Advice) bool { return a.Text == try })
		if i < 0 && try != "" {
			f.Tries, whom, i = append(f.Tries, Advice{Text: try}), append(whom, nil), len(f.Tries)
		}
		if i >= 0 {
			whom[i] = append(whom[i], m.name)
		}
	}
	if len(f.Tries) > 1 {
		for i := range f.Tries {
			f.Tries[i].For = strings.Join(whom[i], ", ")
		}
	}
	if !slices.ContainsFunc(group, func(m member) bool { return m.plain != first.plain }) {
		group[0].cause = first.plain // they have one address
	}
	f.Cause = cmp.Or(first.plain, f.Text)
	if len(group) > 1 {
		f.Text = first.join(s, group)
		f.Cause = cmp.Or(group[0].cause, f.Text)
	}
	if len(f.Names) > 1 {
		f.Kind += "s"
	}
	return f
}

// members returns the problems that can be merged with others of the same cause.
func members(s Status) map[Problem]member {
	known := map[Problem]member{}
	for _, t := range s.Targets {
		if b, ok := stuck(s, t); ok {
			cause := impersonal(b.cause, t.URL)
			since := t.PausedSince
			if t.State != StatePaused {
				since = s.Now.Add(-downFor(s, t))
			}
			known[b.problem("target", t.Name)] = member{key: cause, plain: b.cause, cause: cause, try: b.try, target: t, since: since, join: joinStuck}
		}
	}
	for _, p := range s.Probes {
		if b, ok := failing(p); ok {
			cause := impersonal(text.FirstLine(p.LastError), p.Target)
			known[b.problem("probe", p.Name)] = member{key: cause, plain: text.FirstLine(p.LastError), cause: cause, try: b.try, since: failingSince(p), join: func(_ Status, all []member) string { return "fail: " + all[0].cause }}
		}
	}
	for _, l := range s.Losses {
		if l.alarms(s.Now) {
			since := l.FirstAt
			if since.IsZero() {
				since = l.LastAt
			}
			cause := "samples " + l.Outcome() + ": " + lossCause(l)
			if l.Reason == ReasonUnread {
				cause = "the record of losses could not be read"
			}
			plain := cause
			if words, _ := refusedWith(s, l); words != "" {
				plain = "samples " + l.Outcome() + ": " + words
			}
			try := lossTry(s, l)
			if l.Target != "" {
				try = strings.ReplaceAll(try, "rejected "+l.Target+"`", "rejected "+nameHere+"`")
			}
			known[lossProblem(s, l)] = member{key: "loss\x00" + l.Reason, plain: plain, cause: cause, try: try, loss: l, since: since, join: joinLosses}
		}
	}
	return known
}

// causeOf returns the cause in a problem without when it began; "" for its whole text.
func causeOf(s Status, kind string, p Problem) string {
	switch w := s.WAL; {
	case kind == "log" && w.Error != "" && strings.HasPrefix(p.Text, logFails):
		return "cannot be written: " + logErrorEnd(w.Error)
	case kind == "log" && strings.Contains(p.Text, "less than wal.min_free_bytes"):
		return Size(w.FreeBytes) + " free, less than wal.min_free_bytes"
	case kind == "config" && s.Config.ReloadError != "" && strings.HasPrefix(p.Text, "the reload at"):
		return "reload failed: " + firstMistake(s.Config)
	case kind == "target" && strings.HasSuffix(p.Text, skewCost):
		return strings.TrimSuffix(p.Text, skewCost)
	case kind == "target":
		if before, after, ok := strings.Cut(p.Text, " not sent since "); ok {
			if _, why, ok := strings.Cut(after, ": "); ok {
				return before + " not sent: " + why
			}
		}
	}
	return ""
}

// sinceOf returns when a problem began that has no record of its own; zero: unknown.
func sinceOf(s Status, kind, name string) time.Time {
	switch kind {
	case "log":
		if s.WAL.Error != "" {
			return s.WAL.ErrorSince
		}
		return s.WAL.LowSince
	case "config":
		if s.Config.ReloadError != "" {
			return s.Config.ReloadedAt
		}
		return s.Config.LoadedAt
	case "clock":
		return s.Clock.LastStepAt
	case "receiver":
		for _, r := range s.Receivers {
			if r.Name == name && !r.LastErrorAt.IsZero() {
				return r.LastErrorAt
			}
		}
	case "scrape":
		for _, j := range s.Scrape {
			if since := j.downSince(); j.Job == name && !since.IsZero() {
				return since
			}
		}
	case "probe":
		for _, p := range s.Probes {
			if p.Name == name && p.State == "hung" {
				return p.LastRun
			}
		}
	case "target":
		for _, t := range s.Targets {
			if t.Name == name && len(t.Muted) > 0 {
				return t.Muted[0].Since
			}
			if t.Name == name && deliveryOf(s, t) == DeliveryBehind {
				return t.OldestPending
			}
		}
	}
	return inputSince(s, kind, name)
}

// inputSince returns since when an input exceeds its limit of series, or appends those of another one; zero: it does neither.
func inputSince(s Status, kind, name string) time.Time {
	for _, in := range s.Inputs {
		if in.Kind == kind && in.Name == name && !in.OverSince.IsZero() {
			return in.OverSince
		}
	}
	for _, d := range s.Duplicates {
		if d.Other == kind+" "+name {
			return d.Since
		}
	}
	return time.Time{}
}

// failingSince returns the time of the first of the failures in a row, by the probe's interval.
func failingSince(p ProbeStatus) time.Time {
	if p.LastRun.IsZero() || p.Failures == 0 {
		return time.Time{}
	}
	return p.LastRun.Add(-time.Duration(p.Failures-1) * p.Interval)
}

// impersonal replaces the address in a text, so that the same failure at two addresses gives the same text. A host without a dot or colon
// stays: it may be a word.
func impersonal(text, address string) string {
	if address == "" {
		return text
	}
	text = strings.ReplaceAll(text, address, "its address")
	if u, err := url.Parse(address); err == nil && strings.ContainsAny(u.Host, ".:") {
		text = strings.ReplaceAll(text, u.Host, "its address")
		if strings.ContainsAny(u.Hostname(), ".:") {
			text = strings.ReplaceAll(text, u.Hostname(), "its host")
		}
	}
	return text
}

// joinStuck describes the cost of several targets that accept nothing for one cause; each row shows the target's own
// backlog.
func joinStuck(s Status, all []member) string {
	longest := all[0].target
	var waiting uint64
	never, whole := 0, s.WAL.Error == ""
	var targets []TargetStatus
	for _, m := range all {
		targets = append(targets, m.target)
		if downFor(s, m.target) > downFor(s, longest) {
			longest = m.target
		}
		waiting += m.target.PendingSamples
		whole = whole && m.target.Ledger.Dropped["budget"] == 0
		if neverDelivered(s, m.target) {
			never++
		}
	}
	text := all[0].cause + ". " + downSince(s, longest)
	if whole {
		text += "; nothing is lost"
	}
	text += "; " + onDisk(waiting) + ", all targets added up"
	if room := Room(s, targets...); room != "" {
		text += ", with " + room + " at this rate"
	}
	if never > 0 {
		text += fmt.Sprintf("; %d of them have never received any data", never)
	}
	return text
}

// joinLosses describes the losses of several targets for one reason.
func joinLosses(s Status, all []member) string {
	sum := all[0].loss
	sum.Samples = 0
	for _, m := range all {
		sum.Samples += m.loss.Samples
		if m.loss.LastAt.After(sum.LastAt) {
			sum.LastAt = m.loss.LastAt
		}
		if m.loss.FirstAt.Before(sum.FirstAt) {
			sum.FirstAt = m.loss.FirstAt
		}
	}
	return sum.Text(s.Now) + " (all targets added up)"
}
