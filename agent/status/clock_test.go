package status

import (
	"strings"
	"testing"
	"time"
)

func TestClockProblems(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name  string
		now   time.Time
		clock ClockStatus
		want  []string // in the texts, one each
		level string
	}{
		{"steady", now, ClockStatus{}, nil, ""},
		{"back", now, ClockStatus{Steps: 1, LastStepAt: now.Add(-10 * time.Minute), LastStepSeconds: -3600}, []string{"set 60 min back at 11:50:00. Samples carry times that were used before: receivers that accept no out-of-order samples refuse them until the clock is past 12:50:00"}, SeverityNote},
		{"ahead", now, ClockStatus{Steps: 2, LastStepAt: now.Add(-time.Second), LastStepSeconds: 365 * 86400}, []string{"set 365 days ahead at 11:59:59 (2 times since the start)"}, SeverityNote},
		{"long ago", now, ClockStatus{Steps: 1, LastStepAt: now.Add(-2 * time.Hour), LastStepSeconds: -3600, Suspends: 1, LastSuspendAt: now.Add(-2 * time.Hour), LastSuspendSeconds: 60}, nil, ""},
		{"suspended", now, ClockStatus{Suspends: 1, LastSuspendAt: now.Add(-time.Minute), LastSuspendSeconds: 28800}, []string{"suspended for 8 h until 11:59:00"}, SeverityNote},
		{"not set", time.Unix(300, 0).UTC(), ClockStatus{}, []string{"says January 1970: it is not set"}, SeverityWarning},
	} {
		got := clockProblems(Status{Running: true, Now: tc.now, Clock: tc.clock})
		if len(got) != len(tc.want) {
			t.Errorf("%s: %+v, want %d", tc.name, got, len(tc.want))
			continue
		}
		for i, p := range got {
			if !strings.Contains(p.Text, tc.want[i]) || p.Severity != tc.level {
				t.Errorf("%s: %+v, want %q", tc.name, p, tc.want[i])
			}
		}
	}
	if got := clockProblems(Status{Now: time.Unix(300, 0)}); len(got) != 0 {
		t.Errorf("of an agent that is down: %+v", got)
	}
	often := Status{Now: now, Clock: ClockStatus{Steps: 9, LastStepAt: now, LastStepSeconds: 5}}
	if got := clockProblems(often); len(got) != 1 || got[0].Try == "" {
		t.Errorf("%+v, want what to do", got)
	}
}

// While the clock is so far ahead that samples are dropped, not all data is delivered.
func TestVerdictOnAClockThatIsAhead(t *testing.T) {
	s := load(t, "ok")
	s.Targets[0].ClockSkew, s.Targets[0].FutureLimit = 6*time.Hour, 10*time.Minute
	s.Problems = Problems(s)
	if v := VerdictOf(s); v.Level != SeverityWarning {
		t.Errorf("%+v, want a warning: nothing was dropped", v)
	}
	s.Targets[0].Ledger.Dropped, s.Targets[0].Ledger.Lost = map[string]uint64{"future": 242}, 242
	s.Problems = Problems(s)
	if v := VerdictOf(s); v.Level != SeverityError || v.Text != "Samples are dropped: the receiver's clock and this host's differ too much" {
		t.Errorf("%+v", v)
	}
	s.Targets[0].ClockSkew = 0 // put right: a note of what is lost stays
	s.Problems = Problems(s)
	if v := VerdictOf(s); v.Level != LevelOK {
		t.Errorf("%+v, want ok", v)
	}
}

// TestWordsForFutureSamples: while samples are dropped because of the receiver's clock, an
// error shows both clocks, how many samples, and what to do, since either clock may be wrong.
func TestWordsForFutureSamples(t *testing.T) {
	now := time.Date(2026, 3, 4, 10, 15, 0, 0, time.UTC)
	for _, c := range []struct {
		name        string
		skew, limit time.Duration
		dropped     uint64
		severity    string
		words       []string
	}{
		{"a quarter of an hour", 15 * time.Minute, 10 * time.Minute, 2220, SeverityError, []string{
			"the receiver's clock says 10:00:00, this host's 10:15:00", "more than future_limit (10 min", "2\u202f220 samples", "dropped as future"}},
		{"a small limit", 2 * time.Minute, time.Minute, 5, SeverityError, []string{"says 10:13:00, this host's 10:15:00", "5 samples"}},
		{"an empty clock", now.Sub(time.Unix(0, 0)), 10 * time.Minute, 310530, SeverityError, []string{
			"the receiver's clock says 1970-01-01 00:00:00, this host's 2026-03-04 10:15:00", "310\u202f530"}},
		{"over midnight", 11 * time.Hour, 10 * time.Minute, 1, SeverityError, []string{"2026-03-03 23:15:00, this host's 2026-03-04 10:15:00", "1 sample "}},
		{"nothing was dropped", 15 * time.Minute, 10 * time.Minute, 0, SeverityWarning, []string{"15 min ahead"}},
		{"no limit", 15 * time.Minute, 0, 3, SeverityWarning, []string{"15 min ahead"}},
		{"within the limit by now", 9 * time.Minute, 10 * time.Minute, 3, SeverityWarning, []string{"9 min ahead"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			target := TargetStatus{Name: "up", ClockSkew: c.skew, FutureLimit: c.limit}
			target.Ledger.Dropped = map[string]uint64{"future": c.dropped}
			got := skewProblems(now, target)
			if len(got) != 1 || got[0].Severity != c.severity || got[0].Try == "" {
				t.Fatalf("%+v, want one %s", got, c.severity)
			}
			for _, w := range c.words {
				if !strings.Contains(got[0].Text, w) {
					t.Errorf("%q does not have %q", got[0].Text, w)
				}
			}
			if c.severity == SeverityError && !strings.Contains(got[0].Try, "future_limit: 0s") {
				t.Errorf("what to do: %q", got[0].Try)
			}
		})
	}
}
