package top

import (
	"fmt"
	"slices"
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
			lines, _ := draw(s, size[0], size[1], 0, false)
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

// TestScreenSaysWhatIsWrong: on 80×24 with many of all, each problem is there first, with its cause, since when and what to do, then the
// targets, those with problems first, and the inputs; the last line says how much there is.
func TestScreenSaysWhatIsWrong(t *testing.T) {
	s := busy(50, 1000)
	lines, first := draw(s, 80, 24, 0, false)
	text := strings.Join(lines, "\n")
	for _, want := range []string{
		"✗ target target-49: 401; since 11:54:00 (6 min)\n  Try: ", "! probe probe-00: timeout\n  Try: `hwsagent check --probe probe-00` runs it once",
		"400/s", "lines 1–19 of ", "q quits",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
	if first != 0 || !strings.HasPrefix(lines[4], "✗ ") {
		t.Errorf("the screen begins with line %d, or not with the worst problem:\n%s", first, text)
	}
	for i, l := range lines {
		if strings.HasPrefix(l, "TARGET") && !strings.HasPrefix(lines[i+1], "target-49") {
			t.Errorf("the target that is not well is not the first:\n%s", text)
		}
	}
	lines, first = draw(s, 80, 24, 1<<30, false)
	text = strings.Join(lines, "\n")
	if !strings.HasPrefix(lines[0], "✗ ") || !strings.HasPrefix(lines[22], "probe probe-01 ") || !strings.Contains(lines[23], fmt.Sprintf("lines %d–%d of %d", first+1, first+19, first+19)) {
		t.Errorf("the end is not the fastest probe, or the verdict is gone:\n%s", text)
	}
	all, _ := draw(s, 80, 2000, 0, false)
	for i, l := range all {
		if strings.HasPrefix(l, "SLOWEST") && (!strings.Contains(all[i+1], "probe-00") || !strings.Contains(all[i+2], "probe-999")) {
			t.Errorf("the probes are not in the order of their trouble and time:\n%s", strings.Join(all[i:i+5], "\n"))
		}
	}
	coloured, _ := draw(s, 80, 24, 0, true)
	colour := strings.Join(coloured, "\n")
	if !strings.Contains(colour, "\x1b[31m✗ ") || !strings.Contains(colour, "\x1b[33m! ") {
		t.Errorf("no colours:\n%q", colour)
	}
}

// TestKeys: the keys of terminals and of less scroll; other ones, and the parts of a sequence, do nothing.
func TestKeys(t *testing.T) {
	for typed, want := range map[string][]key{
		"q": {quit}, "\x03": {quit}, "jk": {down, up}, " b": {pageDown, pageUp}, "gG": {start, end}, "x": {none},
		"\x1b[A\x1bOB": {none, none, up, none, none, down}, "\x1b[5~": {none, none, none, pageUp}, "\x1b[6~q": {none, none, none, pageDown, quit},
		"\x1bq": {none, quit}, "\x1b[1;5Aq": {none, none, none, none, none, none, quit}, "\x1b[\x1b[B": {none, none, none, none, down},
	} {
		var k keys
		var got []key
		for _, b := range []byte(typed) {
			got = append(got, k.next(b))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q is %v, want %v", typed, got, want)
		}
	}
	if pageDown.lines(24) != 16 || up.lines(24) != -1 || start.lines(24) > -1<<20 {
		t.Error("keys scroll by other numbers of lines")
	}
}
