package status

import (
	"strings"
	"testing"
	"time"
)

// A panic is a problem of its input for an hour after the last one.
func TestPanicProblems(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name  string
		count uint64
		last  time.Duration // ago
		want  string
	}{
		{"none", 0, 0, ""},
		{"one", 1, time.Minute, "panicked at 11:59:00: it broke, at a.go:1"},
		{"many", 1234, time.Minute, "panicked 1\u202f234 times since 10:30:00, last at 11:59:00: it broke, at a.go:1"},
		{"just shown", 2, time.Hour, "panicked 2 times since 10:30:00, last at 11:00:00: it broke, at a.go:1"},
		{"long ago", 2, time.Hour + time.Second, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var p *PanicStatus
			if tc.count > 0 {
				p = &PanicStatus{Count: tc.count, Since: now.Add(-90 * time.Minute), Last: now.Add(-tc.last), Error: "it broke, at a.go:1"}
			}
			s := Status{Now: now, Inputs: []InputStatus{{Kind: "probe", Name: "host", Panics: p}, {Kind: "probe", Name: "good"}}, Pull: &PullStatus{Panics: p}}
			var subjects []string
			for _, problem := range inputProblems(s) {
				subjects = append(subjects, problem.Subject)
				if problem.Severity != SeverityWarning || problem.Text != tc.want {
					t.Errorf("%+v, want %q", problem, tc.want)
				}
			}
			want := "probe host,pull"
			if tc.want == "" {
				want = ""
			}
			if got := strings.Join(subjects, ","); got != want {
				t.Errorf("problems of %q, want %q", got, want)
			}
		})
	}
}
