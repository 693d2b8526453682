package status

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hwsagent/internal/text"
)

var update = flag.Bool("update", false, "write the expected texts anew")

// load reads one of the statuses in testdata.
func load(t *testing.T, name string) Status {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var s Status
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return Judge(s)
}

var statuses = []string{"ok", "held", "full", "down", "new", "notargets", "clock", "missed", "scrape", "inputs"}

func TestWriteText(t *testing.T) {
	for _, name := range statuses {
		var b bytes.Buffer
		if err := WriteText(&b, load(t, name)); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", name+".txt")
		if *update {
			if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), b.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

func TestVerdict(t *testing.T) {
	for name, want := range map[string]Verdict{
		"missed":    {SeverityWarning, "Fresh data arrives; 4\u202f300\u202f000 samples of a backlog follow", ExitTarget},
		"ok":        {LevelOK, "All data arrives, 1.2 s behind", ExitOK},
		"held":      {SeverityError, "Data arrives at 2 of 3 targets; not at vm: the receiver refuses access: 401 Unauthorized: invalid token", ExitTarget},
		"full":      {SeverityError, "The log cannot be written: no space left on device; new samples are refused", ExitTarget},
		"down":      {SeverityError, "The agent is not running; 412 samples wait on disk", ExitNotRunning},
		"new":       {SeverityWarning, "Ready; nothing collected yet", ExitAttention},
		"notargets": {SeverityWarning, "Samples are kept in the log; there is no target to send them to", ExitAttention},
	} {
		if diff := cmp.Diff(want, VerdictOf(load(t, name))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A loss in the past is shown, but does not alarm for ever.
func TestOldLossIsANote(t *testing.T) {
	s := load(t, "ok")
	s.Targets[0].Ledger.Lost, s.Targets[0].Ledger.Dropped = 3, map[string]uint64{"too_old": 3}
	s.Problems = Problems(s)
	if v := VerdictOf(s); v.Level != LevelOK {
		t.Errorf("verdict %+v, want ok", v)
	}
	if len(s.Problems) != 1 || s.Problems[0].Severity != SeverityNote || !strings.Contains(s.Problems[0].Text, "3 too old") {
		t.Errorf("problems %+v, want one note with the reason", s.Problems)
	}
}

func TestUnits(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct{ got, want string }{
		{Span(0), "0 s"}, {Span(4 * time.Millisecond), "4 ms"}, {Span(1234 * time.Millisecond), "1.2 s"}, {Span(59 * time.Second), "59 s"},
		{Span(5 * time.Minute), "5 min"}, {Span(300 * time.Microsecond), "0.3 ms"}, {Span(26 * time.Hour), "26 h"}, {Span(100 * time.Hour), "4.2 days"}, {Span(-3 * time.Second), "3 s"},
		{Count(0), "0"}, {Count(999), "999"}, {Count(1000), "1\u202f000"}, {Count(1284020), "1\u202f284\u202f020"},
		{Size(0), "0 B"}, {Size(1023), "1023 B"}, {Size(1024), "1.0 KiB"}, {Size(2 << 30), "2.0 GiB"}, {Size(1<<63 - 1), "8.0 EiB"},
		{Rate(0), "0/s"}, {Rate(0.5), "0.5/s"}, {Rate(412.4), "412/s"},
		{Ago(now, time.Time{}), "never"}, {Ago(now, now), "now"}, {Ago(now, now.Add(-90*time.Second)), "90 s ago"},
		{Clock(now, now.Add(-time.Hour)), "11:00:00"}, {Clock(now, now.Add(-50*time.Hour)), "Mar 2 10:00"}, {Clock(now, now.AddDate(-1, 0, 0)), "Mar 4 2025 12:00"}, {Clock(now, time.Time{}), "–"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// TestPlain: no text of a device controls the terminal or turns the words behind it around.
func TestPlain(t *testing.T) {
	if got, want := Plain("a\x1b[31m\u202eb\u2066c\td\n\u00e9"), "a?[31m?b?c d\n\u00e9"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestNoProblemsAreAList: a program may go through the problems of an agent that has none.
func TestNoProblemsAreAList(t *testing.T) {
	s := Judge(Status{})
	text, err := json.Marshal(s)
	if err != nil || !strings.Contains(string(text), `"problems":[]`) {
		t.Errorf("%v, problems %#v", err, s.Problems)
	}
}

func TestScrapeProblems(t *testing.T) {
	var got []string
	for _, p := range load(t, "scrape").Problems {
		if strings.HasPrefix(p.Subject, "scrape ") {
			got = append(got, p.Severity+" "+p.Subject+": "+text.FirstLine(p.Text))
		}
	}
	want := []string{
		"error scrape bmc: not all of the job works: error creating HTTP client: unable to read CA cert /etc/hwsagent/ca.pem: no such file or directory",
		`warning scrape node: http://10.0.0.2:9100/metrics is down: <script>alert(1)</script> context deadline exceeded`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("problems:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Commands in an advice are set as such on the page; a backtick without its other one is a word's.
func TestPiecesOfAdvice(t *testing.T) {
	for text, want := range map[string][]Piece{
		"":                         {{"", false}},
		"start it":                 {{"start it", false}},
		"run `hwsagent check` now": {{"run ", false}, {"hwsagent check", true}, {" now", false}},
		"`a`; `b`":                 {{"", false}, {"a", true}, {"; ", false}, {"b", true}, {"", false}},
		"the key `name":            {{"the key `name", false}},
	} {
		if diff := cmp.Diff(want, Advice{Text: text}.Pieces()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// A paused target is shown as a problem while it is paused, with the remedy.
func TestPaused(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	s := Status{Running: true, Now: now, Targets: []TargetStatus{
		{Name: "a", State: StateOK, Ledger: LedgerStatus{Appended: 9, Delivered: 9, Balanced: true}},
		{Name: "b", State: StatePaused, PausedSince: now.Add(-time.Hour), PendingSamples: 9, PendingBytes: 100, LagSeconds: 3600, Ledger: LedgerStatus{Appended: 9, Pending: 9, Balanced: true}},
	}, WAL: WALStatus{MaxBytes: 1000, SamplesPerSec: 1, BytesPerSec: 1, Appended: 9}}
	s.Problems = Problems(s)
	if len(s.Problems) != 1 || s.Problems[0].Severity != SeverityWarning || s.Problems[0].Try != "hwsagent targets resume b" {
		t.Errorf("problems %+v", s.Problems)
	}
	if v := VerdictOf(s); v.Level != SeverityWarning || v.Text != "Data arrives at 1 of 2 targets; not at b: paused" {
		t.Errorf("verdict %+v", v)
	}
	if _, ok := FullIn(s, s.Targets[1]); !ok {
		t.Error("it is not told when the log is full")
	}
	// Of an agent that is down.
	s.Running, s.Targets[1].State = false, StateStopped
	if all := Problems(s); len(all) != 1 || all[0].Severity != SeverityNote || !strings.Contains(all[0].Text, "stays so") {
		t.Errorf("problems %+v", all)
	}
}
