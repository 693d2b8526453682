package status

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// minTerminal is the least width for which texts are wrapped.
const minTerminal = 40

// WriteTerminal is [WriteText] for a terminal with that many columns: sentences are wrapped, and the rows of tables are cut, because the
// findings below have their texts in full. With colour, the verdict, rows and findings have the colours of their levels, by ANSI
// escape codes.
func WriteTerminal(out io.Writer, s Status, columns int, colour bool) error {
	var text bytes.Buffer
	if err := WriteText(&text, s); err != nil {
		return err
	}
	levels := rowLevels(s)
	var b strings.Builder
	finding := "" // the level of the finding that a line belongs to
	for i, line := range strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n") {
		level := ""
		switch {
		case i == 0:
			level = s.Conclusion().Level
		case strings.HasPrefix(line, "Error "):
			finding = SeverityError
		case strings.HasPrefix(line, "Warning "):
			finding = SeverityWarning
		case strings.HasPrefix(line, "Note "):
			finding = SeverityNote
		case !strings.HasPrefix(line, "    "):
			finding = ""
			name, _, _ := strings.Cut(line, "  ")
			level = levels[name]
		}
		if finding != "" && !strings.HasPrefix(line, "    Try") {
			level = finding
		}
		for _, part := range Fitted(line, max(columns, minTerminal)) {
			b.WriteString(paint(part, level, colour) + "\n")
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// rowLevels returns the levels of the rows of tables by their first cells.
func rowLevels(s Status) map[string]string {
	levels := map[string]string{}
	for _, p := range s.Probes {
		levels[Plain(p.Name)] = p.Level()
	}
	for _, t := range s.Targets {
		levels[Plain(t.Name)] = LevelOf(s, t)
	}
	for _, head := range []string{"TARGET", "PROBE", "RECEIVER", "JOB", "SCRAPE JOB"} {
		levels[head] = "head"
	}
	return levels
}

// Fitted returns the line in parts of at most n characters: the row of a table cut, a sentence wrapped.
func Fitted(line string, n int) []string {
	if utf8.RuneCountInString(line) <= n {
		return []string{line}
	}
	indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
	if strings.Contains(line[len(indent):], "  ") {
		return []string{Cut(line, n)}
	}
	hang := indent + "    "
	var parts []string
	part := indent
	for word := range strings.FieldsSeq(line) {
		room := n - utf8.RuneCountInString(part)
		switch {
		case part == indent || part == hang:
			part += word
		case utf8.RuneCountInString(word)+1 <= room:
			part += " " + word
		default:
			parts = append(parts, part)
			part = hang + word
		}
	}
	return slices.Concat(parts, []string{part})
}

// paint colours a line by its level.
func paint(line, level string, colour bool) string {
	code := map[string]string{LevelOK: "32", SeverityError: "31", SeverityWarning: "33", SeverityNote: "2", "head": "1"}[level]
	if !colour || code == "" || line == "" {
		return line
	}
	return "\x1b[" + code + "m" + line + "\x1b[0m"
}
