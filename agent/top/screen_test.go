package top

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"hwsagent/agent/status"
)

// busy returns an agent with many targets and probes, of which some are not well.
func busy(targets, probes int) status.Status {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	s := status.Status{Schema: 1, Running: true, Version: "1.0", Host: "h", Now: now, Started: now.Add(-time.Hour), WAL: status.WALStatus{Bytes: 1 << 20, MaxBytes: 2 << 30, SamplesPerSec: 400, BytesPerSec: 900}}
	for i := range targets {
		t := status.TargetStatus{Name: fmt.Sprintf("target-%02d", i), State: status.StateOK, LastSuccess: now, Ledger: status.LedgerStatus{Appended: 9, Delivered: 9, Balanced: true}}
		if i == targets-1 {
			t.State, t.Why, t.DownSince, t.LagSeconds, t.PendingSamples, t.PendingBytes = status.StateHeld, "401", now.Add(-6*time.Minute), 60, 1000, 1<<20
			t.LastError, t.LastErrorAt, t.OldestPending = "401 Unauthorized \x1b[2J", now, now.Add(-time.Minute)
		}
		s.Targets = append(s.Targets, t)
	}
	for i := range probes {
		p := status.ProbeStatus{Name: fmt.Sprintf("probe-%02d", i), State: "ok", Took: time.Duration(i) * time.Millisecond, Interval: 15 * time.Second, LastRun: now}
		if i == 0 {
			p.State, p.LastError = "failing", "timeout\nand more"
		}
		s.Probes = append(s.Probes, p)
	}
	return status.Judge(s)
}

// TestScreenFits: on every size of a terminal, every line fits, there are as many as it has, and nothing steers it.
func TestScreenFits(t *testing.T) {
	for _, n := range []struct{ targets, probes int }{{0, 0}, {1, 0}, {0, 1}, {3, 4}, {50, 1000}} {
		s := busy(n.targets, n.probes)
		for _, size := range [][2]int{{40, 8}, {80, 24}, {80, 25}, {132, 50}, {200, 2000}} {
			lines := draw(s, size[0], size[1], false)
			if len(lines) != size[1] {
				t.Errorf("%+v on %v: %d lines", n, size, len(lines))
			}
			for _, l := range lines {
				if utf8.RuneCountInString(l) > size[0] || strings.ContainsAny(l, "\n\x1b") {
					t.Errorf("%+v on %v: the line %q", n, size, l)
				}
			}
		}
	}
}

// TestScreenSaysWhatIsWrong: on 80×24 with many of all, what is wrong is there, first, with its error; what is not shown is counted.
func TestScreenSaysWhatIsWrong(t *testing.T) {
	s := busy(50, 1000)
	lines := draw(s, 80, 24, false)
	text := strings.Join(lines, "\n")
	for _, want := range []string{"target-49  held", "  401 Unauthorized", "probe probe-00   failing", "15 s  timeout", "more lines", "problem", "400/s", "q quits"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
	for i, l := range lines {
		if strings.HasPrefix(l, "TARGET") && !strings.HasPrefix(lines[i+1], "target-49") {
			t.Errorf("the target that is not well is not the first:\n%s", text)
		}
		if strings.HasPrefix(l, "SLOWEST") && (!strings.Contains(lines[i+1], "probe-00") || !strings.Contains(lines[i+2], "probe-999")) {
			t.Errorf("the probes are not in the order of their trouble and time:\n%s", text)
		}
	}
	colour := strings.Join(draw(s, 80, 24, true), "\n")
	if !strings.Contains(colour, "\x1b[31m✗ ") || strings.Count(colour, "\x1b[0m") < 10 {
		t.Errorf("no colours:\n%q", colour)
	}
}
