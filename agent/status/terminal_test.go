package status

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// TestWriteTerminal: on a terminal no line is wider than it, no word of a finding is lost, and levels have colours only if wanted.
func TestWriteTerminal(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	s := Status{Schema: 1, Running: true, Now: now, Started: now.Add(-time.Hour), Targets: []TargetStatus{
		{Name: "good", State: StateOK, Ledger: LedgerStatus{Appended: 9, Delivered: 9, Balanced: true}},
		{Name: "bad", State: StateHeld, Why: "the receiver refuses access: " + strings.Repeat("many words ", 30), PendingSamples: 5,
			Ledger: LedgerStatus{Appended: 5, Pending: 5, Balanced: true}},
	}}
	s = Judge(s)
	var plain bytes.Buffer
	if err := WriteText(&plain, s); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^good +delivering `).MatchString(plain.String()) || !regexp.MustCompile(`(?m)^bad +held `).MatchString(plain.String()) {
		t.Errorf("the states are not the page's:\n%s", plain.String())
	}
	words := func(text string) string {
		_, findings, _ := strings.Cut(text, "\nWarning ")
		return strings.Join(strings.Fields(findings), " ")
	}
	for _, columns := range []int{60, 80, 120, 200} {
		var b bytes.Buffer
		if err := WriteTerminal(&b, s, columns, false); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > columns {
				t.Errorf("%d columns, and a line of %d: %s", columns, n, line)
			}
		}
		if got, want := words(b.String()), words(plain.String()); got != want || want == "" {
			t.Errorf("%d columns: the findings are\n%s\nwant\n%s", columns, got, want)
		}
		if strings.Contains(b.String(), "\x1b") {
			t.Errorf("there are colours although colour is off:\n%q", b.String())
		}
	}
	var b bytes.Buffer
	if err := WriteTerminal(&b, s, 100, true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\x1b[33mWARNING: ", "\x1b[33mbad ", "\x1b[32mgood ", "\x1b[1mTARGET "} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%q", want, b.String())
		}
	}
}

// TestTheLogIsTheCauseOnce: a probe that works while the log refuses its samples is not shown as failing, here as on the page.
func TestTheLogIsTheCauseOnce(t *testing.T) {
	const cause = "open /var/lib/hwsagent/wal/00000007: permission denied"
	s := Judge(Status{Running: true, Now: time.Now(), WAL: WALStatus{Dir: "/var/lib/hwsagent", Error: cause},
		Probes: []ProbeStatus{{Name: "host", Type: "host", State: "failing", Failures: 3, LastError: "commit: " + cause}}})
	var b bytes.Buffer
	if err := WriteText(&b, s); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "00000007"); n != 1 || strings.Contains(b.String(), "failing") || !regexp.MustCompile(`(?m)^host +host +refused `).MatchString(b.String()) {
		t.Errorf("the log's error is there %d times:\n%s", n, b.String())
	}
}

// TestLastsIsSilentAtTheStart: the rate of the first two minutes says little, and no duration is made of it.
func TestLastsIsSilentAtTheStart(t *testing.T) {
	now := time.Now()
	s := Status{Running: true, Now: now, WAL: WALStatus{MaxBytes: 1 << 30, BytesPerSec: 100}}
	for up, want := range map[time.Duration]bool{5 * time.Second: false, 119 * time.Second: false, 121 * time.Second: true} {
		s.Started = now.Add(-up)
		if _, known := Lasts(s); known != want {
			t.Errorf("after %s: known %v, want %v", up, known, want)
		}
	}
}
