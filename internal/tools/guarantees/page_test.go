package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hwsagent/internal/tools/results"
)

func example() results.Run {
	return results.Run{
		Machines: []results.Machine{
			{Date: time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC), Commit: "abc", Seed: 7, Percent: 100, Cores: 2},
			{Date: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC), Commit: "abd", Seed: 8, Percent: 100, Cores: 2},
		},
		Lines: []results.Line{
			{What: "kill -9, sync 1s", Count: 500, Figures: map[string]float64{"duplicates": 12}},
			{What: "kill -9, sync always", Count: 500, Failed: true},
		},
		Outcomes: []results.Outcome{{Part: "kills", Verdict: "FAILED", Seconds: 90}, {Part: "disk", Verdict: "ok", Seconds: 60, Of: 1}, {Part: "kills", Test: "TestKill", Verdict: "FAILED", Replay: "go test"}},
	}
}

func TestRender(t *testing.T) {
	const page = "| a | <!-- measured: kill -9 --> old |\n| b | <!-- measured: none --> kept |\n" + sectionBegins + "old\n" + sectionEnds + "end\n"
	got, err := render(page, example())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| a | <!-- measured: kill -9 --> 2026-11-21, abc: sync 1s 500 times, 0 lost, duplicates 12; sync always 500 times, 0 lost **(the test failed)** |\n",
		"<!-- measured: none --> kept |\n",
		"| kills | FAILED | 1.5 | abc |\n",
		"Parts of it repeated 2026-11-21 09:00 UTC at commit abd, seed 8,",
		"| disk | ok | 1.0 | abd |\n",
		"Failed: `TestKill`; again by `go test`\n",
		sectionEnds + "end\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the page has no %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "old") {
		t.Errorf("something old is left:\n%s", got)
	}
	if again, err := render(got, example()); err != nil || again != got {
		t.Errorf("written twice it is another page: %v\n%s", err, again)
	}
}

func TestRenderRefuses(t *testing.T) {
	if _, err := render("no markers", example()); err == nil {
		t.Error("a page without markers was written")
	}
	if _, err := render(sectionBegins+sectionEnds, results.Run{}); err == nil {
		t.Error("a run of no commit was written")
	}
}

// TestPage keeps docs/guarantees.md such that a run can be written into it, and honest:
// every test that it names exists where the link says.
func TestPage(t *testing.T) {
	const docs = "../../../docs/"
	text, err := os.ReadFile(docs + "guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := render(string(text), example()); err != nil {
		t.Error(err)
	}
	links := regexp.MustCompile(`\[(Test\w+)\]\(([^)]+)\)`).FindAllStringSubmatch(string(text), -1)
	if len(links) < 20 {
		t.Fatalf("only %d tests are named", len(links))
	}
	for _, link := range links {
		source, err := os.ReadFile(docs + link[2])
		if err != nil {
			t.Errorf("%s: %v", link[1], err)
		} else if !strings.Contains(string(source), "func "+link[1]+"(t *testing.T)") {
			t.Errorf("%s has no %s", link[2], link[1])
		}
	}
}

func TestGrouped(t *testing.T) {
	got := grouped([]results.Line{
		{What: "steps", Test: "TestSteps/0", Count: 3},
		{What: "cut, ext4", Test: "TestCut/ext4", Count: 5, Figures: map[string]float64{"worst": 1}},
		{What: "steps", Test: "TestSteps/1", Count: 4, Lost: 1, Failed: true},
		{What: "steps", Test: "TestSteps/far", Count: 1},
	})
	want := []results.Line{
		{What: "steps", Test: "TestSteps", Count: 7, Lost: 1, Failed: true},
		{What: "cut, ext4", Test: "TestCut/ext4", Count: 5, Figures: map[string]float64{"worst": 1}},
		{What: "steps", Test: "TestSteps/far", Count: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
