package web

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// ScrapeStatus describes one scrape job.
type ScrapeStatus struct {
	Job     string               `json:"job"`
	Error   string               `json:"job_error,omitempty"` // why the job cannot be started or changed, or leaves targets out
	Targets []ScrapeTargetStatus `json:"scrape_targets"`
	Dropped int                  `json:"dropped_targets"` // removed by relabelling
}

// ScrapeTargetStatus describes one scraped address.
type ScrapeTargetStatus struct {
	URL        string            `json:"url"`    // without user, password and query
	Health     string            `json:"health"` // up, down, unknown
	LastScrape time.Time         `json:"last_scrape,omitzero"`
	Took       time.Duration     `json:"took_ns"`
	LastError  string            `json:"last_error,omitempty"`
	Interval   string            `json:"interval"`
	Labels     map[string]string `json:"labels"`
}

// The states of [ScrapeTargetStatus.Health].
const (
	healthUp      = "up"
	healthDown    = "down"
	healthUnknown = "unknown"
)

// down returns the job's targets that are down.
func (s *ScrapeStatus) down() (all []ScrapeTargetStatus) {
	for _, t := range s.Targets {
		if t.Health == healthDown {
			all = append(all, t)
		}
	}
	return all
}

// why returns the error of the last scrape, without the URL, which is shown beside it.
func (t *ScrapeTargetStatus) why() string {
	return strings.TrimPrefix(firstLine(t.LastError), fmt.Sprintf("Get %q: ", t.URL))
}

// counts formats how many of the targets are up.
func (s *ScrapeStatus) counts() string {
	up := 0
	for _, t := range s.Targets {
		if t.Health == healthUp {
			up++
		}
	}
	return fmt.Sprintf("%d of %d", up, len(s.Targets))
}

// scrapeProblems returns the problems of a scrape job and its targets.
func scrapeProblems(s ScrapeStatus) []Problem {
	subject := "scrape " + s.Job
	if s.Error != "" {
		return []Problem{{SeverityError, subject, "not all of the job works: " + firstLine(s.Error), "`hwsagent check --no-network` looks at the files that it names"}}
	}
	down := s.down()
	if len(down) == 0 {
		return nil
	}
	text := fmt.Sprintf("%s is down: %s", down[0].URL, down[0].why())
	if len(down) > 1 {
		text = fmt.Sprintf("%d of %d targets are down, as %s: %s", len(down), len(s.Targets), down[0].URL, down[0].why())
	}
	return []Problem{{SeverityWarning, subject, text, "look at the target, or at all of them on the page /targets"}}
}

// scrapeView is a job as the page shows it.
type scrapeView struct {
	ScrapeStatus
	Level, Up, Last, Slowest, Every, Problem string
	Rows                                     []scrapeRow
}

// scrapeRow is a target as the page shows it.
type scrapeRow struct {
	ScrapeTargetStatus
	Level, Last, TookText, LabelText string
}

func newScrape(s Status, j ScrapeStatus) scrapeView {
	v := scrapeView{ScrapeStatus: j, Level: LevelOK, Up: j.counts(), Every: "–", Problem: firstLine(j.Error)}
	var last time.Time
	var slowest time.Duration
	for _, t := range j.Targets {
		r := scrapeRow{ScrapeTargetStatus: t, Level: LevelOK, Last: ago(s.Now, t.LastScrape), TookText: "–", LabelText: labelText(t.Labels)}
		switch t.Health {
		case healthDown:
			r.Level = SeverityWarning
		case healthUnknown:
			r.Level = SeverityNote
		}
		if t.Took > 0 {
			r.TookText = span(t.Took)
		}
		if t.LastScrape.After(last) {
			last = t.LastScrape
		}
		slowest, v.Every = max(slowest, t.Took), t.Interval
		if every, err := time.ParseDuration(t.Interval); err == nil { // fails for days and longer, which need no comparison
			v.Every = span(every)
		}
		v.Rows = append(v.Rows, r)
	}
	v.Last, v.Slowest = ago(s.Now, last), "–"
	if slowest > 0 {
		v.Slowest = span(slowest)
	}
	down := j.down()
	switch {
	case j.Error != "":
		v.Level = SeverityError
	case len(down) > 0:
		v.Level, v.Problem = SeverityWarning, down[0].URL+": "+down[0].why()
		if len(down) > 1 {
			v.Problem += fmt.Sprintf("; and %d more", len(down)-1)
		}
	case last.IsZero():
		v.Level = SeverityNote
	}
	return v
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

// writeScrape renders the jobs for a terminal.
func writeScrape(table io.Writer, s Status) {
	if len(s.Scrape) > 0 {
		fmt.Fprint(table, "\nSCRAPE JOB\tUP\tDROPPED\tLAST\tSLOWEST\tEVERY\tERROR\n")
	}
	for _, j := range s.Scrape {
		v := newScrape(s, j)
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", plain(j.Job), v.Up, j.Dropped, v.Last, v.Slowest, v.Every, orDash(plain(cut(v.Problem, 70))))
	}
}
