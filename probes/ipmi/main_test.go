package ipmi

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"hwsagent/probes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newProbe(t *testing.T, c Config) *Probe {
	t.Helper()
	p, err := New(c, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// round is what a round says, sorted, and its error.
func round(t *testing.T, p *Probe) (string, error) {
	t.Helper()
	r := probes.NewRound(0)
	err := p.Collect(t.Context(), r)
	return text(t, r), err
}

func text(t *testing.T, r *probes.Round) string {
	t.Helper()
	var lines []string
	for _, s := range r.Samples() {
		if strings.HasPrefix(s.Family.Name, "hwsagent_device_") {
			continue // the time is in them
		}
		var labels []string
		for i := 0; i < len(s.Labels); i += 2 {
			if s.Labels[i+1] != "" {
				labels = append(labels, fmt.Sprintf("%s=%q", s.Labels[i], s.Labels[i+1]))
			}
		}
		slices.Sort(labels)
		lines = append(lines, fmt.Sprintf("%s{%s} %v\n", s.Family.Name, strings.Join(labels, ","), s.Value))
	}
	slices.Sort(lines)
	series := make(map[string]bool)
	for _, l := range lines {
		name := l[:strings.LastIndexByte(l, ' ')]
		if series[name] {
			t.Errorf("the series %s is there twice", name)
		}
		series[name] = true
	}
	return strings.Join(lines, "")
}
