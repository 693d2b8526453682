package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"hwsagent/agent/status"
	"hwsagent/internal/text"
)

// The least size of a screen, in characters and lines.
const (
	minColumns = 40
	minRows    = 8
)

// mostNames bounds how many names a problem spells out.
const mostNames = 5

// line is one line of a screen. level selects its colour: ok, warning, error, note (dim), "" (none), or head.
type line struct{ text, level string }

const levelHead = "head"

// draw renders s for a terminal with that many columns and rows, and fills all of them. Below the verdict come the problems with their
// remedies, then targets and inputs; from is the first of these lines to show, and first the one that is shown. colour says whether to
// colour lines, by ANSI escape codes. s must come from [status.Judge].
func draw(s status.Status, columns, rows, from int, colour bool) (out []string, first int) {
	columns, rows = max(columns, minColumns), max(rows, minRows)
	lines, body := screenHead(s), screenBody(s, columns)
	room := rows - len(lines) - 1 // the last line is for the keys
	first = max(0, min(from, len(body)-room))
	shown := body[first:min(first+room, len(body))]
	lines = append(lines, shown...)
	for len(lines) < rows-1 {
		lines = append(lines, line{})
	}
	foot := "q quits"
	if len(body) > room {
		foot = fmt.Sprintf("lines %d–%d of %d · ↑ ↓ PgUp PgDn scroll · q quits", first+1, first+len(shown), len(body))
	}
	lines = append(lines, line{foot, status.SeverityNote})
	for _, l := range lines {
		out = append(out, l.render(columns, colour))
	}
	return out, first
}

// screenBody returns what scrolls.
func screenBody(s status.Status, columns int) (body []line) {
	for _, part := range [][]line{screenProblems(s, columns), screenTargets(s), screenProbes(s)} {
		if len(body) > 0 && len(part) > 0 {
			body = append(body, line{})
		}
		body = append(body, part...)
	}
	return body
}

// screenHead returns the verdict and the log.
func screenHead(s status.Status) []line {
	v := s.Conclusion()
	about := "hwsagent " + s.Version
	if s.Host != "" {
		about = s.Host + " · " + about
	}
	if s.Running && !s.Started.IsZero() {
		about += " · up " + status.Span(s.Now.Sub(s.Started))
	}
	w := s.WAL
	log := "log " + status.Size(w.Bytes)
	if w.MaxBytes > 0 {
		log += fmt.Sprintf(" of %s (%d %%)", status.Size(w.MaxBytes), status.Percent(w.Bytes, w.MaxBytes))
	}
	if s.Running {
		log += " · in " + status.Rate(w.SamplesPerSec) + " · " + status.Count(uint64(max(0, w.Series))) + " series"
	}
	if d, ok := status.Lasts(s); ok {
		log += " · room for " + status.Lasting(d)
	}
	return []line{{markOf(v.Level) + " " + v.Text, v.Level}, {about + " · " + s.Now.Format("15:04:05"), status.SeverityNote}, {log, ""}, {}}
}

// screenProblems lists problems, worst first, each with its cause, since when, and what to do.
func screenProblems(s status.Status, columns int) (lines []line) {
	for _, f := range status.Findings(s) {
		if f.Severity == status.SeverityNote {
			continue
		}
		names := f.Names
		more := ""
		if len(names) > mostNames {
			names, more = names[:mostNames], fmt.Sprintf(" and %d more", len(names)-mostNames)
		}
		text := markOf(f.Severity) + " " + strings.TrimSpace(f.Kind+" "+strings.Join(names, ", ")+more) + ": " + f.Cause
		if !f.Since.IsZero() {
			text += "; since " + status.Clock(s.Now, f.Since) + " (" + status.Span(max(0, s.Now.Sub(f.Since))) + ")"
		}
		lines = append(lines, wrapped(text, columns, f.Severity)...)
		for _, a := range f.Tries {
			whom := ""
			if a.For != "" {
				whom = " (" + a.For + ")"
			}
			lines = append(lines, wrapped("  Try"+whom+": "+a.Text, columns, "")...)
		}
	}
	return lines
}

// wrapped returns a text as lines.
func wrapped(text string, columns int, level string) (lines []line) {
	for _, part := range status.Fitted(status.Plain(strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' }), " ")), columns) {
		lines = append(lines, line{part, level})
	}
	return lines
}

// markOf returns a sign for a level, for terminals without colours.
func markOf(level string) string {
	return map[string]string{status.LevelOK: "✓", status.SeverityWarning: "!", status.SeverityError: "✗"}[level]
}

// screenTargets lists targets, those with problems first.
func screenTargets(s status.Status) []line {
	table := [][]string{{"TARGET", "STATE", "BEHIND", "WAITING", "SIZE", "IN", "SENT", "REFUSED", "LOST"}}
	targets := slices.SortedStableFunc(slices.Values(s.Targets), func(a, b status.TargetStatus) int {
		return cmp.Compare(status.Rank(status.LevelOf(s, a)), status.Rank(status.LevelOf(s, b)))
	})
	for _, t := range targets {
		in := status.Rate(s.WAL.SamplesPerSec)
		if t.State == status.StateOrphan || !s.Running {
			in = "–"
		}
		table = append(table, []string{status.Cut(status.Plain(t.Name), 24), status.Word(s, t), status.Span(status.Seconds(t.LagSeconds)), status.Count(t.PendingSamples),
			status.Size(t.PendingBytes), in, status.Rate(t.SentPerSec), status.Count(t.Ledger.Undelivered().Refused), status.Count(t.Ledger.Undelivered().Lost)})
	}
	texts := aligned(table)
	lines := []line{{texts[0], levelHead}}
	for i, t := range targets {
		lines = append(lines, line{texts[i+1], status.LevelOf(s, t)})
	}
	return lines
}

// screenProbes lists failing inputs first, then the slowest ones.
func screenProbes(s status.Status) []line {
	type row struct {
		cells       []string
		level, says string
		took        float64
	}
	var rows []row
	for _, p := range s.Probes {
		level := p.Level()
		rows = append(rows, row{[]string{status.Cut(status.Plain("probe "+p.Name), 30), p.State, status.Span(p.Took), status.Count(uint64(max(0, p.Samples))), status.Span(p.Interval)}, level, p.LastError, p.Took.Seconds()})
	}
	for _, j := range s.Scrape {
		v := j.Summary(s.Now)
		took, samples := v.Took.Seconds(), "–"
		rows = append(rows, row{[]string{status.Cut(status.Plain("scrape "+j.Job), 30), v.Up, status.Span(v.Took), samples, v.Every}, v.Level, v.Problem, took})
	}
	if len(rows) == 0 {
		return nil
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(status.Rank(a.level), status.Rank(b.level)), cmp.Compare(b.took, a.took))
	})
	table := [][]string{{"SLOWEST INPUTS", "STATE", "TOOK", "SAMPLES", "EVERY"}}
	for _, r := range rows {
		table = append(table, r.cells)
	}
	texts := aligned(table)
	lines := []line{{texts[0], levelHead}}
	for i, r := range rows {
		shown := texts[i+1]
		if r.says != "" {
			shown += "  " + status.Plain(text.FirstLine(r.says))
		}
		lines = append(lines, line{shown, r.level})
	}
	return lines
}

// aligned formats the rows of a table in columns; numbers are aligned to the right.
func aligned(table [][]string) []string {
	widths := make([]int, len(table[0]))
	for _, row := range table {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	out := make([]string, len(table))
	for r, row := range table {
		var b strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			switch {
			case i >= 2:
				b.WriteString("  " + pad + cell)
			case i == 1:
				b.WriteString("  " + cell + pad)
			default:
				b.WriteString(cell + pad)
			}
		}
		out[r] = b.String()
	}
	return out
}

// render returns the line, at most columns characters long.
func (l line) render(columns int, colour bool) string {
	text := status.Cut(status.Plain(strings.ReplaceAll(l.text, "\n", " ")), columns)
	code := map[string]string{status.SeverityError: "31", status.SeverityWarning: "33", status.SeverityNote: "2", levelHead: "1"}[l.level]
	if !colour || code == "" || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
