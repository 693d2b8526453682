package check

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"hwsagent/internal/text"
)

// WriteText prints a report for people.
func (r *Report) WriteText(w io.Writer) error {
	for _, g := range r.Groups {
		if err := g.WriteText(w); err != nil {
			return err
		}
	}
	return r.WriteVerdict(w)
}

// WriteVerdict prints a line with the parts that were not tried, if any, and a line with the result.
func (r *Report) WriteVerdict(w io.Writer) error {
	left := ""
	if len(r.NotTried) > 0 {
		left = "not tried: " + strings.Join(r.NotTried, ", ") + "\n"
	}
	_, err := fmt.Fprintf(w, "%s%s\n", left, r.verdict())
	return err
}

// WriteText prints a group for people. A group without problems takes one line; otherwise each step is printed with its remedy.
func (g *Group) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	title := strings.TrimSpace(g.Kind + " " + g.Name)
	if g.About != "" {
		title += " (" + g.About + ")"
	}
	if g.Result == OK {
		var texts []string
		for _, s := range g.Steps {
			texts = append(texts, s.about(g))
		}
		fmt.Fprintf(b, "%s %s: %s\n", g.Result.mark(), title, strings.Join(texts, "; "))
		return b.Flush()
	}
	fmt.Fprintf(b, "%s %s\n", g.Result.mark(), title)
	for _, s := range g.Steps {
		fmt.Fprintf(b, "    %s %s\n", s.Result.mark(), s.about(g))
		if s.Try != "" {
			fmt.Fprintf(b, "        Try: %s\n", s.Try)
		}
	}
	if g.more != "" {
		fmt.Fprintf(b, "%s\n", strings.TrimRight(g.more, "\n"))
	}
	return b.Flush()
}

// verdict returns the last line of the report.
func (r *Report) verdict() string {
	problems, warnings := 0, 0
	for _, g := range r.Groups {
		for _, s := range g.Steps {
			switch s.Result {
			case Fail:
				problems++
			case Warn:
				warnings++
			}
		}
	}
	switch {
	case problems > 0 && warnings > 0:
		return text.Counted(problems, "problem") + ", " + text.Counted(warnings, "warning")
	case problems > 0:
		return text.Counted(problems, "problem")
	case warnings > 0:
		return "no problem, " + text.Counted(warnings, "warning")
	}
	switch {
	case r.level == Live && r.part:
		return "no problem in the checked parts; nothing else was checked"
	case r.level == SyntaxOnly:
		return "no problem in the file; nothing else was checked"
	case r.level == NoNetwork:
		return "no problem on this machine; targets, probes and scrape jobs were not tried"
	}
	return "no problem"
}

// mark is the result as a sign.
func (r Result) mark() string {
	switch r {
	case OK:
		return "✓"
	case Warn:
		return "‼"
	case Fail:
		return "✗"
	}
	return "–"
}

// about returns the step's text, preceded by its name unless the text mentions it.
func (s Step) about(g *Group) string {
	named := s.Result == Fail || s.Result == Skip
	file := g.Kind == GroupFiles && s.Name != noFiles || filepath.IsAbs(s.Name)
	if file || named && s.Name != "load" && s.Name != "warning" {
		return s.Name + ": " + s.Text
	}
	return s.Text
}
