package status

import (
	"testing"
	"time"
)

// A target that accepts nothing is an error at once if waiting cannot help, after two minutes if it is the only one, and
// after five if others are there. Page, exit code and metric follow that rule.
func TestDownSeverity(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name      string
		state     string
		permanent bool
		others    int
		down      time.Duration
		want      int
	}{
		{"it works", StateOK, false, 0, 0, 0},
		{"the certificate has expired", StateRetrying, true, 3, time.Second, 2},
		{"the token is wrong", StateHeld, true, 0, 0, 2},
		{"the only one, at first", StateRetrying, false, 0, 2*time.Minute - time.Second, 1},
		{"the only one", StateRetrying, false, 0, 2 * time.Minute, 2},
		{"one of two, at first", StateRetrying, false, 1, 5*time.Minute - time.Second, 1},
		{"one of two", StateRetrying, false, 1, 5 * time.Minute, 2},
		{"held for what may pass", StateHeld, false, 1, 3 * time.Minute, 1},
		{"paused", StatePaused, false, 0, time.Hour, 1},
	} {
		s := Status{Running: true, Now: now, Targets: []TargetStatus{
			{Name: "a", State: c.state, Permanent: c.permanent, DownSince: now.Add(-c.down), Why: "w", Try: "t", Ledger: LedgerStatus{Appended: 1, Delivered: 1, Balanced: true}},
			{Name: "removed", State: StateOrphan},
		}}
		for range c.others {
			s.Targets = append(s.Targets, TargetStatus{Name: "b", State: StateOK, Ledger: LedgerStatus{Appended: 1, Delivered: 1, Balanced: true}})
		}
		if got := Severity(s, s.Targets[0]); got != c.want {
			t.Errorf("%s: severity %d, want %d", c.name, got, c.want)
		}
		s = Judge(s)
		if got, want := LevelOf(s, s.Targets[0]), []string{LevelOK, SeverityWarning, SeverityError}[c.want]; got != want {
			t.Errorf("%s: level %s, want %s", c.name, got, want)
		}
		if bad := c.want > 0; bad != (s.Verdict.ExitCode == ExitTarget) {
			t.Errorf("%s: exit code %d", c.name, s.Verdict.ExitCode)
		}
	}
}

// What has one cause is one finding.
func TestOneFindingPerCause(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	down := TargetStatus{Name: "a", State: StateRetrying, Why: "w", Try: "t", DownSince: now.Add(-time.Second), Ledger: LedgerStatus{Appended: 1, Delivered: 1, Balanced: true}}
	expired, token, clock, missing := down, down, down, down
	missing.Failure, missing.Credentials = "file_missing", "open x: no such file or directory"
	expired.Failure, expired.Expiries = "certificate_expired", []ExpiryStatus{{What: "receiver's certificate", At: now.Add(-time.Hour), WarnAt: now.Add(-48 * time.Hour)}}
	token.Failure, token.Expiries = "credentials", []ExpiryStatus{{What: "token", At: now.Add(-time.Hour), WarnAt: now.Add(-48 * time.Hour)}}
	clock.State, clock.AwaitsClock, clock.ClockSkew = StateHeld, true, time.Hour
	full := Status{Running: true, Now: now, Targets: []TargetStatus{{Name: "a", State: StateOK, Ledger: LedgerStatus{Appended: 1, Delivered: 1, Balanced: true}}},
		WAL:    WALStatus{Error: "no space left on device", ErrorSince: now.Add(-time.Minute), Refused: 9, FreeBytes: 1, MinFreeBytes: 1 << 20},
		Losses: []LossStatus{{Reason: ReasonRefused, Samples: 9, FirstAt: now.Add(-time.Minute), LastAt: now}}}
	of := func(t TargetStatus) Status { return Status{Running: true, Now: now, Targets: []TargetStatus{t}} }
	for name, s := range map[string]Status{"an expired certificate": of(expired), "an expired token": of(token), "a wrong clock": of(clock), "a missing file": of(missing), "a full disk": full} {
		if all := Judge(s).Findings; len(all) != 1 {
			t.Errorf("%s: %+v", name, all)
		}
	}
}

// After a failed reload the first mistake is shown, and how many others there are.
func TestFirstMistake(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"a.yaml:1:1: x", 1, "a.yaml:1:1: x"},
		{"a.yaml:1:1: x\n  ^\na.yaml:2:1: y", 2, "a.yaml:1:1: x (and 1 more mistake)"},
		{"a.yaml:1:1: x\n  ^\n", 4, "a.yaml:1:1: x (and 3 more mistakes)"},
		{"cannot open the log\nmore", 0, "cannot open the log …"},
		{"cannot open the log", 0, "cannot open the log"},
	} {
		if got := firstMistake(ConfigStatus{ReloadError: c.text, ReloadMistakes: c.n}); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
