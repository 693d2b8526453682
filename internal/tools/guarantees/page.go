package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"hwsagent/internal/tools/results"
)

const (
	sectionBegins = "<!-- the last full run: written by internal/tools/guarantees -->\n"
	sectionEnds   = "<!-- end of the last full run -->\n"
)

var measured = regexp.MustCompile(`<!-- measured: ([^>]+) -->[^|\n<]*`)

// render inserts the figures of a run into a page.
func render(page string, run results.Run) (string, error) {
	before, rest, begins := strings.Cut(page, sectionBegins)
	_, after, ends := strings.Cut(rest, sectionEnds)
	if !begins || !ends {
		return "", errors.New("it has no section between the markers of the last full run")
	}
	if len(run.Machines) == 0 || slices.ContainsFunc(run.Machines, func(m results.Machine) bool { return m.Commit == "" }) {
		return "", errors.New("the results do not say of which commit they are")
	}
	run.Lines = grouped(run.Lines)
	page = before + sectionBegins + section(run) + sectionEnds + after
	return measured.ReplaceAllStringFunc(page, func(cell string) string {
		what := measured.FindStringSubmatch(cell)[1]
		var found []string
		of := 0
		for _, l := range run.Lines {
			if strings.HasPrefix(l.What, what) {
				found, of = append(found, words(l, what)), max(of, l.Of)
			}
		}
		if len(found) == 0 {
			return cell
		}
		m, share := run.Machines[of], ""
		if m.Percent != 100 {
			share = fmt.Sprintf(" (%d %% of a full run)", m.Percent)
		}
		return fmt.Sprintf("<!-- measured: %s --> %s, %s%s: %s ",
			what, m.Date.Format(time.DateOnly), m.Commit, share, strings.Join(found, "; "))
	}), nil
}

// grouped adds up lines without figures from repetitions of one test, which are subtests named by numbers.
func grouped(lines []results.Line) []results.Line {
	var all []results.Line
	for _, l := range lines {
		if name, n, ok := cutLast(l.Test, "/"); ok && numeral.MatchString(n) && len(l.Figures) == 0 {
			l.Test = name
		}
		i := slices.IndexFunc(all, func(o results.Line) bool {
			return o.What == l.What && o.Test == l.Test && len(o.Figures)+len(l.Figures) == 0
		})
		if i < 0 {
			all = append(all, l)
			continue
		}
		all[i].Count, all[i].Lost, all[i].Failed = all[i].Count+l.Count, all[i].Lost+l.Lost, all[i].Failed || l.Failed
	}
	return all
}

var numeral = regexp.MustCompile(`^[0-9]+$`)

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// words formats a line for a table's cell.
func words(l results.Line, what string) string {
	s := fmt.Sprintf("%d times, %d lost", l.Count, l.Lost)
	if rest := strings.Trim(strings.TrimPrefix(l.What, what), ", "); rest != "" {
		s = rest + " " + s
	}
	if m := l.Measured(); m != "" {
		s += ", " + m
	}
	if l.Failed {
		s += " **(the test failed)**"
	}
	return s
}

// section describes the run as a whole.
func section(run results.Run) string {
	var b strings.Builder
	for i, m := range run.Machines {
		what := "Started"
		if i > 0 {
			what = "Parts of it repeated"
		}
		fmt.Fprintf(&b, "\n%s %s UTC at commit %s, seed %d, on %d cores, Linux %s, load %v.\n",
			what, m.Date.UTC().Format("2006-01-02 15:04"), m.Commit, m.Seed, m.Cores, m.Kernel, m.Load)
		if m.Percent != 100 {
			fmt.Fprintf(&b, "It had %d %% of the full number of faults.\n", m.Percent)
		}
	}
	b.WriteString("\n| part | result | minutes | commit |\n|---|---|---|---|\n")
	for _, o := range run.Outcomes {
		if o.Test == "" {
			fmt.Fprintf(&b, "| %s | %s | %.1f | %s |\n", o.Part, o.Verdict, o.Seconds/60, run.Machines[o.Of].Commit)
		}
	}
	lines := slices.Clone(run.Lines)
	slices.SortStableFunc(lines, func(a, b results.Line) int { return strings.Compare(a.What, b.What) })
	b.WriteString("\n| what | times | acknowledged samples lost | figures | test |\n|---|---|---|---|---|\n")
	for _, l := range lines {
		result := ""
		if l.Failed {
			result = " **failed**"
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %s | `%s`%s |\n", l.What, l.Count, l.Lost, l.Measured(), l.Test, result)
	}
	for _, o := range run.Outcomes {
		if o.Test != "" && o.Replay != "" {
			fmt.Fprintf(&b, "\nFailed: `%s`; again by `%s`\n", o.Test, o.Replay)
		}
	}
	b.WriteByte('\n')
	return b.String()
}
