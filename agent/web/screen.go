package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// The least size of a screen, in characters and lines.
const (
	minColumns = 40
	minRows    = 8
)

// line is one line of a screen. level selects its colour: ok, warning, error, note (dim), "" (none), or head.
type line struct{ text, level string }

const levelHead = "head"

// Screen renders s for a terminal with that many columns and rows, and fills all of them. The worst comes first, and
// lines that do not fit are counted. colour says whether to colour lines, by ANSI escape codes. s must come from
// [Judged].
func Screen(s Status, columns, rows int, colour bool) []string {
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
func screenHead(s Status) []line {
	v := s.verdict()
	mark := map[string]string{LevelOK: "✓", SeverityWarning: "!", SeverityError: "✗"}[v.Level]
	about := "hwsagent " + s.Version
	if s.Host != "" {
		about = s.Host + " · " + about
	}
	if s.Running && !s.Started.IsZero() {
		about += " · up " + span(s.Now.Sub(s.Started))
	}
	w := s.WAL
	log := "log " + size(w.Bytes)
	if w.MaxBytes > 0 {
		log += fmt.Sprintf(" of %s (%d %%)", size(w.MaxBytes), percent(w.Bytes, w.MaxBytes))
	}
	if s.Running {
		log += " · in " + rate(w.SamplesPerSec) + " · " + count(uint64(max(0, w.Series))) + " series"
	}
	if d, ok := Lasts(s); ok {
		log += " · lasts " + lasting(d) + " without targets"
	}
	return []line{{mark + " " + v.Text, v.Level}, {about + " · " + s.Now.Format("15:04:05"), SeverityNote}, {log, ""}, {}}
}

// screenTargets lists targets, those with problems first, each with its last error.
func screenTargets(s Status) []line {
	table := [][]string{{"TARGET", "STATE", "BEHIND", "WAITING", "SIZE", "IN", "SENT", "LOST"}}
	rows := newRows(s, nil)
	for _, r := range rows {
		in := rate(s.WAL.SamplesPerSec)
		if r.State == StateOrphan || !s.Running {
			in = "–"
		}
		table = append(table, []string{cut(plain(r.Name), 24), r.Word, r.Lag, r.Waiting, r.Size, in, r.Sent, count(r.Ledger.Lost)})
	}
	texts := aligned(table)
	lines := []line{{texts[0], levelHead}}
	for i, r := range rows {
		lines = append(lines, line{texts[i+1], r.Level})
		if t := r.TargetStatus; r.Level != LevelOK && lastOf(s, t.Name) != "" {
			lines = append(lines, line{"  " + lastOf(s, t.Name), SeverityNote})
		}
	}
	return lines
}

// lastOf returns the last error of the named target in one line; "" if there is none, or a later request succeeded.
func lastOf(s Status, name string) string {
	for _, t := range s.Targets {
		if t.Name == name && t.LastError != "" {
			return plain(firstLine(brief(t, t.LastError))) + " (" + ago(s.Now, t.LastErrorAt) + ")"
		}
	}
	return ""
}

// screenProbes lists failing inputs first, then the slowest ones.
func screenProbes(s Status) []line {
	type row struct {
		cells       []string
		level, says string
		took        float64
	}
	var rows []row
	for _, p := range s.Probes {
		level := newProbe(s, p).Level
		rows = append(rows, row{[]string{cut(plain("probe "+p.Name), 30), p.State, span(p.Took), count(uint64(max(0, p.Samples))), span(p.Interval)}, level, p.LastError, p.Took.Seconds()})
	}
	for _, j := range s.Scrape {
		v := newScrape(s, j)
		took, samples := 0.0, "–"
		says := j.Error
		for _, t := range j.Targets {
			took = max(took, t.Took.Seconds())
			if says == "" && t.LastError != "" {
				says = t.URL + ": " + t.LastError
			}
		}
		rows = append(rows, row{[]string{cut(plain("scrape "+j.Job), 30), v.Up, span(seconds(took)), samples, v.Every}, v.Level, says, took})
	}
	if len(rows) == 0 {
		return nil
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(levelRank(a.level), levelRank(b.level)), cmp.Compare(b.took, a.took))
	})
	table := [][]string{{"SLOWEST INPUTS", "STATE", "TOOK", "SAMPLES", "EVERY"}}
	for _, r := range rows {
		table = append(table, r.cells)
	}
	texts := aligned(table)
	lines := []line{{texts[0], levelHead}}
	for i, r := range rows {
		text := texts[i+1]
		if r.says != "" {
			text += "  " + plain(firstLine(r.says))
		}
		lines = append(lines, line{text, r.level})
	}
	return lines
}

func screenFoot(s Status) line {
	n := 0
	for _, f := range findings(s) {
		if f.Severity != SeverityNote {
			n++
		}
	}
	switch n {
	case 0:
		return line{"q quits", SeverityNote}
	case 1:
		return line{"q quits · 1 problem; remedy: hwsagent status", SeverityNote}
	}
	return line{fmt.Sprintf("q quits · %d problems; remedies: hwsagent status", n), SeverityNote}
}

// fit returns the first n lines at most, with the count of those left out.
func fit(lines []line, n int) []line {
	if len(lines) <= n || n < 1 {
		return lines[:min(len(lines), max(0, n))]
	}
	left := len(lines) - n + 1
	return append(slices.Clone(lines[:n-1]), line{fmt.Sprintf("  and %d more lines", left), SeverityNote})
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
	text := cut(plain(strings.ReplaceAll(l.text, "\n", " ")), columns)
	code := map[string]string{SeverityError: "31", SeverityWarning: "33", SeverityNote: "2", levelHead: "1"}[l.level]
	if !colour || code == "" || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
