package self

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"hwsagent/probes"
)

// TestSeriesAreThoseOfTheTextFormat compares with the library's own encoder.
func TestSeriesAreThoseOfTheTextFormat(t *testing.T) {
	reg := prometheus.NewRegistry()
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "c_total", Help: "C."}, []string{"a"})
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "g", Help: "G."})
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h_seconds", Help: "H.", Buckets: []float64{0.1, 1}})
	s := prometheus.NewSummary(prometheus.SummaryOpts{Name: "s", Help: "S.", Objectives: map[float64]float64{0.5: 0.1}})
	reg.MustRegister(c, g, h, s)
	c.WithLabelValues("x").Add(3)
	g.Set(-1.5)
	for _, v := range []float64{0.05, 0.5, 5} {
		h.Observe(v)
		s.Observe(v)
	}

	round := probes.NewRound(0)
	if err := New(reg).Collect(t.Context(), round); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, sm := range round.Samples() {
		name := sm.Name
		if name == "" {
			name = sm.Family.Name
		}
		var ls []string
		for i := 0; i < len(sm.Labels); i += 2 {
			ls = append(ls, fmt.Sprintf("%s=%q", sm.Labels[i], sm.Labels[i+1]))
		}
		if len(ls) > 0 {
			name += "{" + strings.Join(ls, ",") + "}"
		}
		got = append(got, fmt.Sprintf("%s %v", name, sm.Value))
	}

	mfs, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, mf := range mfs {
		if _, err := expfmt.MetricFamilyToText(&text, mf); err != nil {
			t.Fatal(err)
		}
	}
	var want []string
	for line := range strings.Lines(text.String()) {
		if !strings.HasPrefix(line, "#") {
			want = append(want, strings.TrimSpace(line))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
