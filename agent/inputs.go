package agent

import (
	"time"

	"hwsagent/agent/clock"
	"hwsagent/agent/config"
	"hwsagent/agent/inputs"
	"hwsagent/agent/status"
	"hwsagent/probes"
)

// inputProbe is the kind of inputs that are probes.
const inputProbe = "probe"

// connectProbes gives each probe its input to the log.
func connectProbes(path *inputs.Path, cfg *config.Config, specs []probes.Spec) {
	settings := map[string]inputs.Settings{}
	for _, p := range cfg.Probes {
		settings[p.Name] = inputs.Settings{MaxSeries: p.MaxSeries, Interval: time.Duration(p.Interval)}
	}
	for i := range specs {
		specs[i].Out = path.Input(inputProbe, specs[i].Name, settings[specs[i].Name])
	}
}

// keepProbes removes the inputs of probes that no longer run.
func keepProbes(path *inputs.Path, specs []probes.Spec) {
	names := make([]string, len(specs))
	for i := range specs {
		names[i] = specs[i].Name
	}
	path.Keep(inputProbe, names)
}

// inputStatus describes the inputs and their series.
func inputStatus(path *inputs.Path, now time.Time) (all []status.InputStatus, twice []status.DuplicateStatus) {
	for _, s := range path.Status() {
		all = append(all, status.InputStatus{
			Kind: s.Kind, Name: s.Name, Series: s.Series, MaxSeries: s.MaxSeries,
			Filtered: s.Filtered, Refused: s.Refused, OverSince: clock.OnWall(now, s.OverSince), Example: s.Example,
			Panics: panicStatus(s.Panics, now),
		})
	}
	for _, d := range path.Duplicates() {
		twice = append(twice, status.DuplicateStatus{
			Input: d.Input, Other: d.Other, Series: d.Series, Samples: d.Samples, Example: d.Example, Sent: d.Sent, Since: clock.OnWall(now, d.Since),
		})
	}
	return all, twice
}
