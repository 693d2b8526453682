package status

import (
	"fmt"
	"time"
)

// showPanic is how long a panic is shown as a problem after it happened.
const showPanic = time.Hour

// panicProblems reports the panics of an input.
func panicProblems(s Status, input string, p *PanicStatus) []Problem {
	if p == nil || s.Now.Sub(p.Last) > showPanic {
		return nil
	}
	text := "panicked at " + Clock(s.Now, p.Last)
	if p.Count > 1 {
		text = fmt.Sprintf("panicked %s times since %s, last at %s", Count(p.Count), Clock(s.Now, p.Since), Clock(s.Now, p.Last))
	}
	return []Problem{{SeverityWarning, input, text + ": " + p.Error, "look for the stack in the agent's log, and report it"}}
}

// inputProblems reports inputs that panicked or exceed their series limit, and series that come from two inputs.
func inputProblems(s Status) []Problem {
	var all []Problem
	for _, in := range s.Inputs {
		all = append(all, panicProblems(s, in.Kind+" "+in.Name, in.Panics)...)
		if in.OverSince.IsZero() {
			continue
		}
		all = append(all, Problem{SeverityWarning, in.Kind + " " + in.Name,
			fmt.Sprintf("reached its limit of %s series: new ones are refused since %s (%s so far), such as %s",
				Count(uint64(max(0, in.MaxSeries))), Clock(s.Now, in.OverSince), Samples(in.Refused), in.Example),
			"drop unneeded series with metric_relabel_configs, or raise its max_series and reload"})
	}
	if s.Pull != nil {
		all = append(all, panicProblems(s, "pull", s.Pull.Panics)...)
	}
	if s.Pull != nil && s.Pull.Open {
		what := "whoever reaches " + s.Pull.Listen + " can read every value"
		if !s.Pull.TLS {
			what += ", in clear text"
		}
		all = append(all, Problem{SeverityWarning, "pull", what,
			"give pull.web_config_file, with TLS and users, or listen on 127.0.0.1"})
	}
	for _, d := range s.Duplicates {
		if d.Sent {
			all = append(all, Problem{SeverityWarning, d.Other,
				fmt.Sprintf("appends %s that external_labels or the escaping of names makes the same as %s of %s, since %s: %s: targets get both mixed, or refuse some",
					seriesInWords(d.Series), map[bool]string{true: "one", false: "those"}[d.Series == 1], d.Input, Clock(s.Now, d.Since), d.Example),
				"give one of the two another name or label, or take the label out of external_labels"})
			continue
		}
		all = append(all, Problem{SeverityWarning, d.Other,
			fmt.Sprintf("appends %s that %s also appends, since %s, such as %s: targets get both mixed, or refuse some",
				seriesInWords(d.Series), d.Input, Clock(s.Now, d.Since), d.Example),
			"switch one of the two off, or give one an extra label, such as labels: {source: second}"})
	}
	return all
}

// seriesInWords returns a number of series in words.
func seriesInWords(n int) string {
	if n == 1 {
		return "1 series"
	}
	return Count(uint64(max(0, n))) + " series"
}
