package agent

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hwsagent/agent/status"
)

// A running agent names what two probes bring, and what is beyond a limit; the probes go on.
func TestLimitsAndDuplicatesAreTold(t *testing.T) {
	r := &running{t: t, file: filepath.Join(t.TempDir(), "agent.yaml"), done: make(chan error, 1)}
	r.extra = `
  - {name: twin, type: canary, interval: 20ms, timeout: 20ms, labels: {job: count}}
  - {name: wild, type: canary, series: 20, interval: 20ms, timeout: 20ms, max_series: 12}
`
	r.configure()
	startAgentWith(t, r, t.TempDir(), "")
	var s status.Status
	until(t, "the status names both", func() bool {
		s = r.Status()
		return len(s.Duplicates) > 0 && slices.ContainsFunc(s.Inputs, func(in status.InputStatus) bool { return in.Refused > 20 })
	})
	if d := s.Duplicates[0]; d.Input+d.Other != "probe countprobe twin" && d.Input+d.Other != "probe twinprobe count" || d.Series == 0 || d.Example == "" {
		t.Errorf("%+v", s.Duplicates)
	}
	for _, in := range s.Inputs { // up and scrape_duration_seconds are let in, too
		if in.Name == "wild" && (in.Series != 14 || in.Example == "") {
			t.Errorf("%+v", in)
		}
	}
	for _, p := range s.Probes {
		if p.Name == "wild" && p.State == "failing" {
			t.Errorf("a limit is no outage: %+v", p)
		}
	}
	var out strings.Builder
	if err := status.WriteText(&out, s); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, want := range []string{"reached its limit of 12 series", "appends", "raise its max_series"} {
		if !strings.Contains(text, want) {
			t.Errorf("the status lacks %q:\n%s", want, text)
		}
	}
}
