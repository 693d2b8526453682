package status

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"hwsagent/internal/text"
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
	DownSince  time.Time         `json:"down_since,omitzero"` // start of the first of the failed scrapes in a row
	Interval   string            `json:"interval"`
	Labels     map[string]string `json:"labels"`
}

// The states of [ScrapeTargetStatus.Health].
const (
	HealthUp      = "up"
	HealthDown    = "down"
	HealthUnknown = "unknown"
)

// down returns the job's targets that are down.
func (s *ScrapeStatus) down() (all []ScrapeTargetStatus) {
	for _, t := range s.Targets {
		if t.Health == HealthDown {
			all = append(all, t)
		}
	}
	return all
}

// downSince returns since when the first of the targets that are down is; zero: none is, or it is not known.
func (s *ScrapeStatus) downSince() (first time.Time) {
	for _, t := range s.down() {
		if first.IsZero() || !t.DownSince.IsZero() && t.DownSince.Before(first) {
			first = t.DownSince
		}
	}
	return first
}

// dialing is how the errors of a connection begin.
var dialing = regexp.MustCompile(`^dial (tcp|udp) \S+: (connect: )?`)

// Why returns the error of the last scrape, without the URL and its address, which are shown beside it.
func (t *ScrapeTargetStatus) Why() string {
	return dialing.ReplaceAllString(strings.TrimPrefix(text.FirstLine(t.LastError), fmt.Sprintf("Get %q: ", t.URL)), "")
}

// counts formats how many of the targets are up.
func (s *ScrapeStatus) counts() string {
	up := 0
	for _, t := range s.Targets {
		if t.Health == HealthUp {
			up++
		}
	}
	return fmt.Sprintf("%d of %d", up, len(s.Targets))
}

// scrapeProblems returns the problems of a scrape job and its targets.
func scrapeProblems(s ScrapeStatus) []Problem {
	subject := "scrape " + s.Job
	if s.Error != "" {
		return []Problem{{SeverityError, subject, "not all of the job works: " + text.FirstLine(s.Error), "`hwsagent check --no-network` looks at the files that it names"}}
	}
	down := s.down()
	if len(down) == 0 {
		return nil
	}
	text := fmt.Sprintf("%s is down: %s", down[0].URL, down[0].Why())
	if len(down) > 1 {
		text = fmt.Sprintf("%d of %d targets are down, as %s: %s", len(down), len(s.Targets), down[0].URL, down[0].Why())
	}
	return []Problem{{SeverityWarning, subject, text, "look at the target, or at all of them on the page /targets"}}
}

// JobSummary describes a job in one line. Level is its worst level; the other fields are texts for people.
type JobSummary struct {
	Level, Up, Last, Slowest, Every string
	Problem                         string        // empty if all is well
	Took                            time.Duration // of the slowest of the last scrapes
}

// Summary returns the job in one line.
func (s *ScrapeStatus) Summary(now time.Time) JobSummary {
	sum := JobSummary{Level: LevelOK, Up: s.counts(), Slowest: "–", Every: "–", Problem: text.FirstLine(s.Error)}
	var last time.Time
	for _, t := range s.Targets {
		if t.LastScrape.After(last) {
			last = t.LastScrape
		}
		sum.Took, sum.Every = max(sum.Took, t.Took), t.Interval
		if every, err := time.ParseDuration(t.Interval); err == nil { // fails for days and longer, which need no comparison
			sum.Every = Span(every)
		}
	}
	sum.Last = Ago(now, last)
	if sum.Took > 0 {
		sum.Slowest = Span(sum.Took)
	}
	down := s.down()
	switch {
	case s.Error != "":
		sum.Level = SeverityError
	case len(down) > 0:
		sum.Level, sum.Problem = SeverityWarning, down[0].URL+": "+down[0].Why()
		if len(down) > 1 {
			sum.Problem += fmt.Sprintf("; and %d more", len(down)-1)
		}
	case last.IsZero():
		sum.Level = SeverityNote
	}
	return sum
}

// Level returns the level of the target's health.
func (t *ScrapeTargetStatus) Level() string {
	switch t.Health {
	case HealthDown:
		return SeverityWarning
	case HealthUnknown:
		return SeverityNote
	}
	return LevelOK
}

// writeScrape renders the jobs for a terminal.
func writeScrape(table io.Writer, s Status) {
	if len(s.Scrape) > 0 {
		fmt.Fprint(table, "\nSCRAPE JOB\tUP\tDROPPED\tLAST\tSLOWEST\tEVERY\tERROR\n")
	}
	for _, j := range s.Scrape {
		v := j.Summary(s.Now)
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", Plain(j.Job), v.Up, j.Dropped, v.Last, v.Slowest, v.Every, orDash(Plain(Cut(v.Problem, 70))))
	}
}
