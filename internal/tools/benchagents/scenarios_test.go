//go:build linux

package main

import (
	"maps"
	"testing"
	"time"
)

func TestUsageSince(t *testing.T) {
	a := usage{cpu: time.Second, samples: 10, requests: 1, wire: 300, disk: 4096, served: 20, encodings: map[string]int{"1.0 zstd": 1}}
	b := usage{cpu: 3 * time.Second, samples: 1010, requests: 3, wire: 30_300, disk: 12_288, served: 1020, encodings: map[string]int{"1.0 zstd": 1, "1.0 snappy": 2}}
	got := b.since(a)
	if got.cpu != 2*time.Second || got.samples != 1000 || got.requests != 2 || got.wire != 30_000 || got.disk != 8192 || got.served != 1000 {
		t.Errorf("%+v", got)
	}
	if want := map[string]int{"1.0 snappy": 2}; !maps.Equal(got.encodings, want) {
		t.Errorf("requests came as %v, want %v: what came before does not count", got.encodings, want)
	}
	if got := perMillion(got); got != 2000 {
		t.Errorf("%v CPU seconds per million, want 2000", got)
	}
}

func TestWindowOfAnAgentThatDoesNotKeepUpSaysNothing(t *testing.T) {
	l := load{targets: 5, series: 100, interval: 5 * time.Second}
	for samples, ok := range map[int64]bool{0: false, 500: false, 999: false, 1000: true, 1500: true} {
		if err := (usage{samples: samples}).plausible(15*time.Second, l); (err == nil) != ok {
			t.Errorf("%d samples in three rounds of 500: %v", samples, err)
		}
	}
	if err := (usage{}).plausible(5*time.Second, l); err == nil {
		t.Error("a window without a sample was taken")
	}
}

func TestMeanAndMax(t *testing.T) {
	if mean, most := meanAndMax([]float64{1, 2, 6}); mean != 3 || most != 6 {
		t.Errorf("%v and %v, want 3 and 6", mean, most)
	}
}

// TestPlanHolds: windows hold whole rounds, or a sample more or less would count for much.
func TestPlanHolds(t *testing.T) {
	for _, p := range []plan{fullPlan(), fullPlan().quick()} {
		for window, l := range map[time.Duration]load{p.steady: p.heavy, p.wire: p.heavy, p.smallFor: p.small} {
			if window < l.interval || window%l.interval != 0 {
				t.Errorf("a window of %s holds no whole rounds of %s", window, l.interval)
			}
		}
	}
}

func TestOptions(t *testing.T) {
	o, err := parseOptions([]string{"-quick", "-outage", "30s", "-parts", "zstd,steady", "-vmagent", "none"})
	if err != nil {
		t.Fatal(err)
	}
	quick := fullPlan().quick()
	if o.plan.outage != 30*time.Second || o.plan.steady != quick.steady || o.plan.smallFor != quick.smallFor {
		t.Errorf("the plan is %+v", o.plan)
	}
	if len(o.parts) != 2 || o.parts[0].name != "zstd" || o.parts[1].name != "steady" {
		t.Errorf("the parts are %v", o.parts)
	}
	if o.programs[vmagent] != "none" || o.programs[ours] == "" {
		t.Errorf("the programs are %v", o.programs)
	}
	for _, wrong := range [][]string{{"-parts", "all"}, {"-steady", "-1s"}, {"more"}, {"-nothing"}} {
		if _, err := parseOptions(wrong); err == nil {
			t.Errorf("%q was taken", wrong)
		}
	}
}

func TestMissingAgentsAreLeftOutByName(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, _, err := findAgents(t.Context(), map[string]string{ours: "no/such/hwsagent"}); err == nil {
		t.Error("it measures without our own agent")
	}
	if _, _, err := findAgents(t.Context(), map[string]string{ours: "/bin/echo", vmagent: "no/such/vmagent"}); err == nil {
		t.Error("an agent that was named and is not there was left out")
	}
	list, notes, err := findAgents(t.Context(), map[string]string{ours: "/bin/echo", vmagent: "none"})
	if err != nil || len(list) != 1 || list[0].Name != ours || len(notes) != 1 {
		t.Errorf("%v, %v: %v; want ours alone, and a note on prometheus", list, notes, err)
	}
}

func TestParseLoad(t *testing.T) {
	if l, err := parseLoad("10x50000@50s"); err != nil || l != (load{targets: 10, series: 50_000, interval: 50 * time.Second}) {
		t.Errorf("%+v, %v", l, err)
	}
	for _, text := range []string{"", "10", "10x5", "x5@1s", "0x5@1s", "1x0@1s", "1x5@0s", "1x5@1", "1x5@"} {
		if l, err := parseLoad(text); err == nil {
			t.Errorf("%q is taken as %+v", text, l)
		}
	}
}
