//go:build linux

package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// report holds the results of a run, as in the JSON file.
type report struct {
	Date    time.Time `json:"date"` // of the start, UTC
	Seconds float64   `json:"seconds"`
	Machine machine   `json:"machine"`
	Plan    string    `json:"plan"`
	Agents  []agent   `json:"agents"`
	Cells   []cell    `json:"cells"`
	Notes   []string  `json:"notes"` // cells without a figure, with the reason
}

// machine describes the machine of the run.
type machine struct {
	Cores      int    `json:"cores"`
	Kernel     string `json:"kernel"`
	LoadBefore string `json:"load_before"` // averages over 1, 5 and 15 minutes
	LoadAfter  string `json:"load_after"`
}

// cell is one row of the table.
type cell struct {
	Figure  figure             `json:"figure"`
	What    string             `json:"what"`
	Of      map[string]float64 `json:"of"`    // by agent
	Ratio   map[string]float64 `json:"ratio"` // hwsagent's figure by that agent's
	Aim     string             `json:"aim,omitempty"`
	Verdict string             `json:"verdict"`
}

// cells turns the measurements into the table's rows.
func cells(all []row, by map[string]figures) []cell {
	var list []cell
	for _, r := range all {
		c := cell{Figure: r.figure, What: r.what, Of: make(map[string]float64), Ratio: make(map[string]float64), Aim: r.aim.String(), Verdict: r.verdict(by)}
		got, measured := by[ours][r.figure]
		for name, f := range by {
			of, ok := f[r.figure]
			if !ok {
				continue
			}
			c.Of[name] = of
			if name != ours && measured && of > 0 {
				c.Ratio[name] = got / of
			}
		}
		list = append(list, c)
	}
	return list
}

// markdown formats the table for people. hwsagent comes last, then its ratios to the others.
func (r report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d cores, Linux %s, load average %s before and %s after; %s; %.1f minutes.\n\n",
		r.Date.Format(time.DateOnly), r.Machine.Cores, r.Machine.Kernel, r.Machine.LoadBefore, r.Machine.LoadAfter, r.Plan, r.Seconds/60)
	head, others := []string{""}, []string{}
	for _, a := range r.Agents {
		head = append(head, a.Name+" "+a.Version)
		if a.Name != ours {
			others = append(others, a.Name)
		}
	}
	for _, o := range others {
		head = append(head, "÷ "+o)
	}
	line(&b, append(head, "to reach", ""))
	b.WriteString("|" + strings.Repeat("---|", len(head)+2) + "\n")
	for _, c := range r.Cells {
		texts := []string{c.What}
		for _, a := range r.Agents {
			texts = append(texts, numberIn(c.Of, a.Name))
		}
		for _, o := range others {
			texts = append(texts, numberIn(c.Ratio, o))
		}
		verdict := c.Verdict
		if verdict == missed {
			verdict = "**missed**"
		}
		line(&b, append(texts, c.Aim, verdict))
	}
	if len(r.Notes) > 0 {
		b.WriteString("\nNot measured:\n\n")
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "- %s\n", n)
	}
	return b.String()
}

// Markers of the table in a page.
const (
	tableBegins = "<!-- the agents: written by internal/tools/benchagents -->\n"
	tableEnds   = "<!-- end of the agents -->\n"
)

// inPage replaces the table in a page.
func inPage(page, table string) (string, error) {
	before, rest, ok := strings.Cut(page, tableBegins)
	_, after, end := strings.Cut(rest, tableEnds)
	if !ok || !end {
		return "", fmt.Errorf("put the table into the page: it has no place between %q and %q", strings.TrimSpace(tableBegins), strings.TrimSpace(tableEnds))
	}
	return before + tableBegins + table + tableEnds + after, nil
}

// line is one row of a table.
func line(b *strings.Builder, texts []string) {
	for _, text := range texts {
		b.WriteString("| " + text)
		if text != "" {
			b.WriteByte(' ')
		}
	}
	b.WriteString("|\n")
}

func numberIn(of map[string]float64, name string) string {
	if x, ok := of[name]; ok {
		return number(x)
	}
	return unjudged
}

// number formats three digits, with at most two after the point.
func number(x float64) string {
	digits := 2
	switch {
	case math.Abs(x) >= 99.95:
		digits = 0
	case math.Abs(x) >= 9.995:
		digits = 1
	}
	text := strconv.FormatFloat(x, 'f', digits, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}
