package agent

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"hwsagent/probes"
	"hwsagent/probes/self"
)

// sentAt counts the series that the probe self sends of the registry at that level.
func sentAt(t *testing.T, level self.Level, all prometheus.Gatherer) int {
	t.Helper()
	round := probes.NewRound(0)
	if err := self.New(ownSeries(level, all)).Collect(t.Context(), round); err != nil {
		t.Fatal(err)
	}
	return len(round.Samples())
}

// TestOwnSeriesAreFew: with 1, 5 and 30 targets, of which one loses samples and the others are out of
// reach, a running agent sends at most 60 series and 35 for each target, and with level: full all that
// the registry has.
func TestOwnSeriesAreFew(t *testing.T) {
	for _, targets := range []int{1, 5, 30} {
		t.Run(fmt.Sprint(targets), func(t *testing.T) {
			sink := newSink(t)
			sink.refuse = func(v float64) bool { return v == 5 }
			entries := []string{entry("a", sink.URL, "")}
			for i := 1; i < targets; i++ {
				entries = append(entries, entry(fmt.Sprintf("down-%d", i), "http://127.0.0.1:1/", ""))
			}
			r := startAgent(t, filepath.Join(t.TempDir(), "s"), entries...)
			until(t, "it has delivered", func() bool { return sink.last() > 8 })
			families, err := r.registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			// One moment for all levels: a metric of a target may come between two.
			now := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return families, nil })
			brief, full := sentAt(t, self.Brief, now), sentAt(t, self.Full, now)
			t.Logf("%d targets: %d series are sent, %d with level: full", targets, brief, full)
			if most := 60 + 35*targets; brief > most {
				t.Errorf("%d series are sent, want at most %d", brief, most)
			}
			if none := sentAt(t, "", now); none != brief {
				t.Errorf("without a level %d series are sent, with brief %d", none, brief)
			}
			if full < 2*brief {
				t.Errorf("level: full sends %d series, brief %d: too few to be all", full, brief)
			}
		})
	}
}
