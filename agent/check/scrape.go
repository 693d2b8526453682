package check

import (
	"context"
	"fmt"
	"strings"
	"time"

	"hwsagent/agent/config"
	"hwsagent/agent/status"
	"hwsagent/internal/text"
	"hwsagent/receivers/scrape"
)

// shownTargets bounds the failing targets of a job that have a step of their own.
const shownTargets = 10

// checkJob looks for the targets of a scrape job and scrapes each once.
func checkJob(ctx context.Context, jobs *config.Jobs, name string) []Step {
	return jobSteps(jobs.Try(ctx, name))
}

// jobSteps returns the steps for what a job's trial has found.
func jobSteps(t scrape.Tried) (steps []Step) {
	switch {
	case t.Problem != "":
		steps = append(steps, Step{Name: "discovery", Result: Fail, Text: t.Problem, Try: "correct that, or the job's entry in scrape_configs"})
	case t.Found == 0:
		steps = append(steps, Step{Name: "discovery", Result: Warn, Text: "no target found", Try: "look at the job's static_configs, or at the files or servers that it names"})
	case t.Kept == 0:
		steps = append(steps, Step{Name: "discovery", Result: Warn, Text: text.Counted(t.Found, "target") + " found, but relabel_configs keep none",
			Try: "look at relabel_configs, and at what selects the targets: labels, or role, namespaces and selectors"})
	case t.Looked || t.Kept != t.Found:
		steps = append(steps, Step{Name: "discovery", Result: OK, Text: fmt.Sprintf("%s found, relabel_configs keep %d", text.Counted(t.Found, "target"), t.Kept)})
	}
	up, failed, samples, slowest := 0, 0, 0, time.Duration(0)
	for _, one := range t.Targets {
		slowest = max(slowest, one.Took)
		if one.Error == "" {
			up++
			samples += one.Samples
			continue
		}
		if failed++; failed <= shownTargets {
			steps = append(steps, Step{Name: one.URL, Result: Fail, Text: one.Error, Try: one.Try, Took: one.Took})
		}
	}
	if failed > shownTargets {
		steps = append(steps, Step{Name: "targets", Result: Fail, Text: text.Counted(failed-shownTargets, "more target") + " failed"})
	}
	if up > 0 {
		answer := "targets answer"
		if up == 1 {
			answer = "target answers"
		}
		steps = append(steps, Step{Name: "scrape", Result: OK, Took: slowest, Text: fmt.Sprintf("%d %s with %s; the slowest took %s", up, answer, text.Counted(samples, "sample"), status.Span(slowest))})
	}
	if left := t.Kept - len(t.Targets); left > 0 {
		steps = append(steps, Step{Name: "targets", Result: Skip, Text: fmt.Sprintf("%d of %d were not tried: a check tries 50 of a job, for at most 15 s", left, t.Kept)})
	}
	return steps
}

// notTried names the enabled and disabled parts of the configuration that no check tries.
func notTried(c *config.Config) (all []string) {
	for _, l := range c.Receivers.Listeners() {
		all = append(all, "receiver "+l.Name)
	}
	if c.Pull != nil {
		all = append(all, "pull")
	}
	var off []string
	for i := range c.Probes {
		if p := &c.Probes[i]; !p.Enabled {
			off = append(off, p.Name)
		}
	}
	if len(off) > 0 {
		all = append(all, "disabled probes ("+strings.Join(off, ", ")+")")
	}
	return all
}
