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

// line is one line of a screen. level selects its colour: ok, warning, error, note (dim), "" (none), or head.
type line struct{ text, level string }

const levelHead = "head"

// draw renders s for a terminal with that many columns and rows, and fills all of them. The worst comes first, and
// lines that do not fit are counted. colour says whether to colour lines, by ANSI escape codes. s must come from
// [status.Judge].
func draw(s status.Status, columns, rows int, colour bool) []string {
	columns, rows = max(columns, minColumns), max(rows, minRows)
	lines := screenHead(s)
	rest := rows - len(lines) - 1 // reserve the last line
	targets, probes := screenTargets(s), screenProbes(s)
	half := max(rest/2, rest-len(probes)-1)
	shown := fit(targets, half)
	lines = append(lines, shown...)
	rest -= len(shown)
	if len(probes) > 0 && rest > 2 {
		lines = append(lines, line{})
		shown = fit(probes, rest-1)
		lines = append(lines, shown...)
	}
	lines = lines[:min(len(lines), rows-1)]
	for len(lines) < rows-1 {
		lines = append(lines, line{})
	}
	lines = append(lines, screenFoot(s))
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = l.render(columns, colour)
	}
	return out
}

// screenHead returns the verdict and the log.
func screenHead(s status.Status) []line {
	v := s.Conclusion()
	mark := map[string]string{status.LevelOK: "✓", status.SeverityWarning: "!", status.SeverityError: "✗"}[v.Level]
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
		log += " · lasts " + status.Lasting(d) + " without targets"
	}
	return []line{{mark + " " + v.Text, v.Level}, {about + " · " + s.Now.Format("15:04:05"), status.SeverityNote}, {log, ""}, {}}
}

// screenTargets lists targets, those with problems first, each with its last error.
func screenTargets(s status.Status) []line {
	table := [][]string{{"TARGET", "STATE", "BEHIND", "WAITING", "SIZE", "IN", "SENT", "LOST"}}
	targets := slices.SortedStableFunc(slices.Values(s.Targets), func(a, b status.TargetStatus) int {
		return cmp.Compare(status.Rank(status.LevelOf(s, a)), status.Rank(status.LevelOf(s, b)))
	})
	for _, t := range targets {
		in := status.Rate(s.WAL.SamplesPerSec)
		if t.State == status.StateOrphan || !s.Running {
			in = "–"
		}
		table = append(table, []string{status.Cut(status.Plain(t.Name), 24), status.Word(s, t), status.Span(status.Seconds(t.LagSeconds)), status.Count(t.PendingSamples),
			status.Size(t.PendingBytes), in, status.Rate(t.SentPerSec), status.Count(t.Ledger.Lost)})
	}
	texts := aligned(table)
	lines := []line{{texts[0], levelHead}}
	for i, t := range targets {
		level := status.LevelOf(s, t)
		lines = append(lines, line{texts[i+1], level})
		if level != status.LevelOK && t.LastError != "" {
			lines = append(lines, line{"  " + status.Plain(text.FirstLine(status.Brief(t, t.LastError))) + " (" + status.Ago(s.Now, t.LastErrorAt) + ")", status.SeverityNote})
		}
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
		says := j.Error
		for _, t := range j.Targets {
			if says == "" && t.LastError != "" {
				says = t.URL + ": " + t.LastError
			}
		}
		rows = append(rows, row{[]string{status.Cut(status.Plain("scrape "+j.Job), 30), v.Up, status.Span(v.Took), samples, v.Every}, v.Level, says, took})
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

func screenFoot(s status.Status) line {
	n := 0
	for _, f := range status.Findings(s) {
		if f.Severity != status.SeverityNote {
			n++
		}
	}
	switch n {
	case 0:
		return line{"q quits", status.SeverityNote}
	case 1:
		return line{"q quits · 1 problem; remedy: hwsagent status", status.SeverityNote}
	}
	return line{fmt.Sprintf("q quits · %d problems; remedies: hwsagent status", n), status.SeverityNote}
}

// fit returns the first n lines at most, with the count of those left out.
func fit(lines []line, n int) []line {
	if len(lines) <= n || n < 1 {
		return lines[:min(len(lines), max(0, n))]
	}
	left := len(lines) - n + 1
	return append(slices.Clone(lines[:n-1]), line{fmt.Sprintf("  and %d more lines", left), status.SeverityNote})
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
