//go:build linux && amd64

package lab

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// window is the time of an event, by the machine's clock in milliseconds, and the series that it may cost.
type window struct {
	event    string
	mine     func(series) bool
	from, to int64
}

// verdict is what the account of the events found.
type verdict struct {
	rounds, series, samples int
	lost                    []string
}

// limits returns the largest allowed distance of two rounds of a probe, in milliseconds: its interval, its timeout, and the delay
// of a loaded host with a software-emulated processor. A hanging device must not increase it.
func limits() map[string]int64 {
	return map[string]int64{"host": 20_000, "smart": 40_000, "ipmi": 20_000, "line": 20_000}
}

// begun is how long a probe's round may take, in milliseconds: its timeout. A round that began before an event may still read
// while it happens.
func begun() map[string]int64 {
	return map[string]int64{"host": 4_000, "smart": 10_000, "ipmi": 4_000, "line": 4_000}
}

// judge takes the series that had a sample in each round of their probe from quiet to begin, and looks for a sample of each in
// each round from begin to end. What a window's event may cost is missing with reason from its start to its end.
func judge(all map[string]series, windows []window, quiet, begin, end int64) verdict {
	var out verdict
	excused := func(s series, at int64) bool {
		return slices.ContainsFunc(windows, func(w window) bool { return at >= w.from-begun()[s.job] && at <= w.to && w.mine(s) })
	}
	for _, job := range slices.Sorted(maps.Keys(limits())) {
		var before, during []int64
		last := begin
		for _, up := range rounds(all, job, quiet) {
			switch {
			case up.at > end:
				continue
			case up.at < begin:
				before = append(before, up.at)
				continue
			}
			during = append(during, up.at)
			if up.at-last > limits()[job] {
				out.lost = append(out.lost, fmt.Sprintf("between two rounds of %s are %d ms, at %d", job, up.at-last, up.at))
			}
			last = up.at
			if up.v != 1 && !excused(series{name: "up", job: job}, up.at) {
				out.lost = append(out.lost, fmt.Sprintf("a round of %s failed, at %d", job, up.at))
			}
		}
		if end-last > limits()[job] {
			out.lost = append(out.lost, fmt.Sprintf("%s has no round after %d, %d ms before the end", job, last, end-last))
		}
		out.rounds += len(during)
		if len(before) < 3 || len(during) == 0 {
			out.lost = append(out.lost, fmt.Sprintf("%s has %d rounds before and %d rounds in the time of the events", job, len(before), len(during)))
		}
		for _, key := range slices.Sorted(maps.Keys(all)) {
			s := all[key]
			if s.job != job {
				continue
			}
			at := make(map[int64]bool, len(s.samples))
			for _, x := range s.samples {
				if !x.stale() {
					at[x.at] = true
				}
			}
			if slices.ContainsFunc(before, func(t int64) bool { return !at[t] }) {
				continue // it came and went before any event
			}
			out.series++
			for _, t := range during {
				if at[t] {
					out.samples++
				} else if !excused(s, t) {
					out.lost = append(out.lost, fmt.Sprintf("%s has no sample at %d, in a round of %.1f s in the time of %s", key, t, took(all, job, t), running(windows, t)))
				}
			}
		}
	}
	return out
}

// running names the events of a time.
func running(windows []window, at int64) string {
	var names []string
	for _, w := range windows {
		if at >= w.from && at <= w.to {
			names = append(names, w.event)
		}
	}
	return cmp.Or(strings.Join(names, ", "), "no event")
}

// took is how long a round took, in seconds.
func took(all map[string]series, job string, at int64) float64 {
	for _, s := range all {
		if s.name != "scrape_duration_seconds" || s.job != job {
			continue
		}
		for _, x := range s.samples {
			if x.at == at {
				return x.v
			}
		}
	}
	return 0
}

// TestJudge: a sample that is missing is found unless an event of its own device excuses it, and so are rounds that are late or fail.
func TestJudge(t *testing.T) {
	mine := func(s series) bool { return s.labels["device"] == "sda" }
	at := func(without ...int64) (out []sample) {
		for t := int64(1000); t <= 9000; t += 1000 {
			if !slices.Contains(without, t) {
				out = append(out, sample{at: t, v: 1})
			}
		}
		return out
	}
	build := func(change func(map[string]series)) map[string]series {
		all := map[string]series{}
		for job := range limits() {
			all["up "+job] = series{name: "up", job: job, samples: at()}
		}
		all["sda"] = series{name: "x", job: "host", labels: map[string]string{"device": "sda"}, samples: at()}
		all["sdb"] = series{name: "x", job: "host", labels: map[string]string{"device": "sdb"}, samples: at()}
		change(all)
		return all
	}
	lose := func(key string, when ...int64) func(map[string]series) {
		return func(all map[string]series) {
			s := all[key]
			s.samples = at(when...)
			all[key] = s
		}
	}
	for name, tc := range map[string]struct {
		change func(map[string]series)
		lost   int
	}{
		"nothing is lost":            {func(map[string]series) {}, 0},
		"the device's own":           {lose("sda", 5000, 6000), 0},
		"the device's own, too long": {lose("sda", 5000, 6000, 7000, 8000), 1},
		"another's":                  {lose("sdb", 5000), 1},
		"unsteady before":            {lose("sdb", 2000, 5000), 0},
		"a failed round": {func(all map[string]series) {
			s := all["up smart"]
			s.samples = slices.Clone(s.samples)
			s.samples[5].v = 0
			all["up smart"] = s
		}, 1},
		"no rounds": {func(all map[string]series) { delete(all, "up ipmi") }, 1},
	} {
		got := judge(build(tc.change), []window{{event: "unplug sda", mine: mine, from: 4500, to: 7500}}, 500, 4000, 9000)
		if len(got.lost) != tc.lost {
			t.Errorf("%s: %d are lost, want %d: %q", name, len(got.lost), tc.lost, got.lost)
		}
	}
}
