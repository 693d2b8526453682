package web

import (
	"fmt"
	"slices"
	"strings"

	"hwsagent/agent/status"
)

// scrapeView is a job as the page shows it.
type scrapeView struct {
	status.ScrapeStatus
	status.JobSummary
	Rows []scrapeRow
}

// scrapeRow is a target as the page shows it.
type scrapeRow struct {
	status.ScrapeTargetStatus
	Level, Last, TookText, LabelText string
}

func newScrape(s status.Status, j status.ScrapeStatus) scrapeView {
	v := scrapeView{ScrapeStatus: j, JobSummary: j.Summary(s.Now)}
	for _, t := range j.Targets {
		r := scrapeRow{ScrapeTargetStatus: t, Level: t.Level(), Last: status.Ago(s.Now, t.LastScrape), TookText: "–", LabelText: labelText(t.Labels)}
		r.LastError = t.Why()
		if t.Took > 0 {
			r.TookText = status.Span(t.Took)
		}
		v.Rows = append(v.Rows, r)
	}
	return v
}

// Down returns how many targets of the job are down.
func (v scrapeView) Down() (n int) {
	for _, r := range v.Rows {
		if r.Health == status.HealthDown {
			n++
		}
	}
	return n
}

// labelText formats a set of labels as in PromQL, sorted by name.
func labelText(set map[string]string) string {
	all := make([]string, 0, len(set))
	for name, value := range set {
		all = append(all, fmt.Sprintf("%s=%q", name, value))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
