//go:build linux

package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestVerdict(t *testing.T) {
	ratio := row{figure: steadyCPU, aim: aim{most: 0.75, of: vmagent}}
	fixed := row{figure: steadyCPU, aim: aim{most: 2}}
	free := row{figure: steadyCPU}
	for _, tc := range []struct {
		name string
		row  row
		by   map[string]figures
		want string
	}{
		{"a ratio at its limit", ratio, map[string]figures{ours: {steadyCPU: 3}, vmagent: {steadyCPU: 4}}, reached},
		{"a ratio above", ratio, map[string]figures{ours: {steadyCPU: 3.01}, vmagent: {steadyCPU: 4}}, missed},
		{"without the other agent", ratio, map[string]figures{ours: {steadyCPU: 1}}, unjudged},
		{"the other agent's run failed", ratio, map[string]figures{ours: {steadyCPU: 1}, vmagent: {binary: 1}}, unjudged},
		{"a figure at its limit", fixed, map[string]figures{ours: {steadyCPU: 2}}, reached},
		{"a figure above", fixed, map[string]figures{ours: {steadyCPU: 2.1}}, missed},
		{"ours was not measured", fixed, map[string]figures{ours: {}, vmagent: {steadyCPU: 1}}, unjudged},
		{"nothing is aimed at", free, map[string]figures{ours: {steadyCPU: 2}}, unjudged},
	} {
		if got := tc.row.verdict(tc.by); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestAimInWords(t *testing.T) {
	for _, tc := range []struct {
		aim  aim
		want string
	}{
		{aim{}, ""},
		{aim{most: 65}, "≤ 65"},
		{aim{most: 0.75, of: vmagent}, "≤ 0.75 × vmagent's"},
		{aim{most: 1, of: vmagent}, "≤ vmagent's"},
		{aim{most: 3, keep: true}, "keep ≤ 3"},
	} {
		if got := tc.aim.String(); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 0.754: "0.75", 2.8: "2.8", 9.996: "10", 29.64: "29.6", 99.96: "100", 281.6: "282", 0.004: "0"} {
		if got := number(x); got != want {
			t.Errorf("%v is written %q, want %q", x, got, want)
		}
	}
}

// TestRowsHaveEachFigureOnce: a figure that has no row is not shown, and one that has two is
// shown twice.
func TestRowsHaveEachFigureOnce(t *testing.T) {
	seen := make(map[figure]int)
	for _, r := range rows(fullPlan()) {
		seen[r.figure]++
		if r.what == "" {
			t.Errorf("%s has no words", r.figure)
		}
	}
	for _, f := range []figure{
		steadyCPU, steadyRSS, steadyAnon, smallRSS, smallAnon, smallCPU, smallDisk, steadyDisk, wire1, wire2, wireZstd,
		cpu2, cpuZstd, firstAfter, drained, drainCPU, startMean, startMax, binary,
	} {
		if seen[f] != 1 {
			t.Errorf("%s has %d rows", f, seen[f])
		}
		delete(seen, f)
	}
	if len(seen) > 0 {
		t.Errorf("rows that this test does not know: %v", seen)
	}
}

func TestMarkdown(t *testing.T) {
	by := map[string]figures{
		prometheus: {steadyCPU: 5.4, steadyDisk: 7.3},
		vmagent:    {steadyCPU: 2.8, steadyDisk: 0},
		ours:       {steadyCPU: 2.05, steadyDisk: 10.5},
	}
	r := report{
		Date: time.Date(2026, 11, 24, 1, 2, 3, 0, time.UTC), Seconds: 90, Plan: "the plan", Machine: machine{Cores: 2, Kernel: "6.1"},
		Agents: []agent{{Name: prometheus, Version: "3.14.0"}, {Name: vmagent, Version: "1.150.0"}, {Name: ours, Version: "1.0"}},
		Cells: cells([]row{
			{steadyCPU, "CPU", aim{most: 0.75, of: vmagent}},
			{steadyDisk, "disk", aim{most: 6}},
			{wire2, "2.0", aim{most: 13}},
		}, by),
		Notes: []string{"v2, vmagent: it has no 2.0"},
	}
	const want = `| | prometheus 3.14.0 | vmagent 1.150.0 | hwsagent 1.0 | ÷ prometheus | ÷ vmagent | to reach | |
|---|---|---|---|---|---|---|---|
| CPU | 5.4 | 2.8 | 2.05 | 0.38 | 0.73 | ≤ 0.75 × vmagent's | reached |
| disk | 7.3 | 0 | 10.5 | 1.44 | – | ≤ 6 | **missed** |
| 2.0 | – | – | – | – | – | ≤ 13 | – |

Not measured:

- v2, vmagent: it has no 2.0
`
	got := r.markdown()
	if _, table, _ := strings.Cut(got, "\n\n"); table != want {
		t.Errorf("got\n%s\nwant\n%s", table, want)
	}
	if !strings.HasPrefix(got, "2026-11-24: 2 cores, Linux 6.1") {
		t.Errorf("it does not begin with the machine: %s", got)
	}
}

func TestInPage(t *testing.T) {
	const page = "before\n" + tableBegins + "old\n" + tableEnds + "after\n"
	got, err := inPage(page, "new\n")
	if want := "before\n" + tableBegins + "new\n" + tableEnds + "after\n"; err != nil || got != want {
		t.Errorf("%q, want %q: %v", got, want, err)
	}
	for _, wrong := range []string{"", tableBegins, tableEnds, tableEnds + tableBegins} {
		if _, err := inPage(wrong, "new"); err == nil {
			t.Errorf("%q has no place for a table, and got one", wrong)
		}
	}
}

// TestDocumentedAims: the page has each row, with the aim by which the command judges.
func TestDocumentedAims(t *testing.T) {
	page, err := os.ReadFile("../../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), tableBegins)
	table, _, _ = strings.Cut(table, tableEnds)
	for _, r := range rows(fullPlan()) {
		found := false
		for line := range strings.Lines(table) {
			found = found || strings.HasPrefix(line, "| "+r.what+" |") && (r.aim == aim{} || strings.Contains(line, "| "+r.aim.String()+" |"))
		}
		if !found {
			t.Errorf("docs/performance.md has no row %q with the aim %q: internal/tools/benchagents -docs writes the table", r.what, r.aim)
		}
	}
}
