package status

import (
	"strings"
	"testing"
	"time"
)

// Expiries are shown; near the end they become a warning with a remedy. Credentials that the agent renews itself cause
// no warning.
func TestExpiries(t *testing.T) {
	s := load(t, "ok")
	const day = 24 * time.Hour
	s.Targets[0].Expiries = []ExpiryStatus{
		{What: "client certificate", At: s.Now.Add(13 * day), WarnAt: s.Now.Add(-day)},
		{What: "token", At: s.Now.Add(-3 * time.Hour), WarnAt: s.Now.Add(-4 * day)},
		{What: "receiver's certificate", At: s.Now.Add(5 * day), WarnAt: s.Now},
		{What: "certificate of the authority", At: s.Now.Add(900 * day), WarnAt: s.Now.Add(886 * day)},
		{What: "OAuth2 token", At: s.Now.Add(time.Minute)},
	}
	s.Problems = Problems(s)
	want := [][2]string{
		{"its client certificate ends in 13 days", "replace the file"},
		{"its token ended 3 h ago", "replace the file"},
		{"its receiver's certificate ends in 5 days", "operator must renew"},
	}
	if len(s.Problems) != len(want) {
		t.Fatalf("%+v", s.Problems)
	}
	for i, p := range s.Problems {
		if p.Severity != SeverityWarning || p.Text != want[i][0] || !strings.Contains(p.Try, want[i][1]) {
			t.Errorf("%+v, want %v", p, want[i])
		}
	}
	if v := VerdictOf(s); v.Level != SeverityWarning || !strings.HasSuffix(v.Text, "something needs attention") {
		t.Errorf("verdict %+v", v)
	}
	line := "client certificate ends in 13 days, token ended 3 h ago, receiver's certificate ends in 5 days, certificate of the authority ends in 900 days, OAuth2 token ends in 60 s"
	if got := ExpiryText(s, s.Targets[0]); got != line {
		t.Errorf("in one line: %q", got)
	}
}

// What to do about a held target is what its failure says.
func TestTryHeld(t *testing.T) {
	for _, tc := range []struct{ try, want string }{{"look at proxy_url", "look at proxy_url"}, {"", "hwsagent targets test a"}} {
		target := TargetStatus{Name: "a", State: StateHeld, Why: "401 Unauthorized: the proxy get a token from 404", Try: tc.try} // no text is read
		if b, ok := stuck(Status{}, target); !ok || !strings.Contains(b.problem("target", "a").Try, tc.want) {
			t.Errorf("%+v, want %s", b, tc.want)
		}
	}
}
