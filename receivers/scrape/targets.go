package scrape

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// Job is one scrape configuration with its targets.
type Job struct {
	Name    string
	Targets []Target // in the order of their addresses
	Dropped int      // targets that relabelling removed
	// Error is why the job cannot be started or changed (retried), why its targets cannot be looked
	// up, or why some are left out. It is empty if the job has no problem.
	Error string
}

// Target is one scraped address.
type Target struct {
	URL       string // without user, password and query
	Labels    labels.Labels
	Health    string // up, down, unknown
	Last      time.Time
	Took      time.Duration
	LastError string    // without secrets
	DownSince time.Time // start of the first of the failed scrapes in a row; zero: it is not down
	Interval  string
}

// Status describes the jobs, in the order of the configuration.
func (s *Scraper) Status() []Job {
	s.mu.Lock()
	names, pools, problems, finder := s.latest.Names(), maps.Clone(s.pools), maps.Clone(s.problems), s.finder
	s.mu.Unlock()
	var all []Job
	for _, name := range names {
		j := Job{Name: name}
		if err := problems[name]; err != nil {
			j.Error = err.Error()
		} else if finder != nil {
			j.Error = finder.problem(name)
		}
		if p := pools[name]; p != nil {
			shown := p.show()
			j.Dropped = shown.drops
			if j.Error == "" {
				j.Error = shown.problem
			}
			for _, m := range shown.members {
				t := m.target
				v := Target{URL: t.shown(), Labels: t.public, Interval: t.labels.Get(model.ScrapeIntervalLabel)}
				v.Health, v.Last, v.Took, v.LastError = t.state.last()
				v.DownSince = t.state.downSince()
				j.Targets = append(j.Targets, v)
			}
		}
		all = append(all, j)
	}
	return all
}

// shownPool is a snapshot of a job.
type shownPool struct {
	cfg     *settings
	members []*member // in the order of their addresses and labels
	dropped []found
	drops   int
	problem string
}

func (p *pool) show() shownPool {
	p.mu.Lock()
	s := shownPool{cfg: p.cfg, members: slices.Collect(maps.Values(p.loops)), dropped: slices.Clone(p.dropped), drops: p.drops, problem: p.problem}
	for i, m := range s.members {
		c := *m // found may change
		s.members[i] = &c
	}
	p.mu.Unlock()
	slices.SortFunc(s.members, func(a, b *member) int {
		return cmp.Or(strings.Compare(a.target.url, b.target.url), labels.Compare(a.target.labels, b.target.labels))
	})
	return s
}

// The answer of GET /api/v1/targets, as in Prometheus' web/api/v1.
type (
	targetsAnswer struct {
		Status string      `json:"status"`
		Data   targetsData `json:"data"`
	}
	targetsData struct {
		Active        []activeTarget  `json:"activeTargets"`
		Dropped       []droppedTarget `json:"droppedTargets"`
		DroppedCounts map[string]int  `json:"droppedTargetCounts"`
	}
	activeTarget struct {
		DiscoveredLabels   labels.Labels `json:"discoveredLabels"`
		Labels             labels.Labels `json:"labels"`
		ScrapePool         string        `json:"scrapePool"`
		ScrapeURL          string        `json:"scrapeUrl"`
		GlobalURL          string        `json:"globalUrl"`
		LastError          string        `json:"lastError"`
		LastScrape         time.Time     `json:"lastScrape"`
		LastScrapeDuration float64       `json:"lastScrapeDuration"`
		Health             string        `json:"health"`
		ScrapeInterval     string        `json:"scrapeInterval"`
		ScrapeTimeout      string        `json:"scrapeTimeout"`
	}
	droppedTarget struct {
		DiscoveredLabels labels.Labels `json:"discoveredLabels"`
		ScrapePool       string        `json:"scrapePool"`
	}
)

// ServeHTTP answers GET /api/v1/targets as Prometheus does, including the parameters state (active,
// dropped, any) and scrapePool. A globalUrl equals the scrapeUrl: the agent has no external address
// to replace localhost with. Secrets are hidden, including values of parameters.
func (s *Scraper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	only, state := r.URL.Query().Get("scrapePool"), strings.ToLower(r.URL.Query().Get("state"))
	s.mu.Lock()
	pools := maps.Clone(s.pools)
	s.mu.Unlock()
	any := state == "" || state == "any"
	active, dropped := any || state == "active", any || state == "dropped"
	data := targetsData{Active: []activeTarget{}, Dropped: []droppedTarget{}}
	if dropped {
		data.DroppedCounts = map[string]int{}
	}
	b := labels.NewBuilder(labels.EmptyLabels())
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		shown := pools[name].show()
		if dropped {
			data.DroppedCounts[name] = shown.drops
		}
		if only != "" && only != name {
			continue
		}
		if active {
			for _, m := range shown.members {
				data.Active = append(data.Active, newActive(b, name, shown.cfg, m))
			}
		}
		if dropped {
			for _, f := range shown.dropped {
				discovered(b, shown.cfg, f.own, f.group)
				data.Dropped = append(data.Dropped, droppedTarget{hiddenLabels(b.Labels()), name})
			}
		}
	}
	body, err := json.Marshal(targetsAnswer{"success", data})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(body); err != nil {
		return // the client has gone
	}
}

func newActive(b *labels.Builder, job string, cfg *settings, m *member) activeTarget {
	t := m.target
	discovered(b, cfg, m.found.own, m.found.group)
	a := activeTarget{
		DiscoveredLabels: hiddenLabels(b.Labels()), Labels: t.public, ScrapePool: job, ScrapeURL: t.shown(), GlobalURL: t.shown(),
		ScrapeInterval: t.labels.Get(model.ScrapeIntervalLabel), ScrapeTimeout: t.labels.Get(model.ScrapeTimeoutLabel),
	}
	var took time.Duration
	a.Health, a.LastScrape, took, a.LastError = t.state.last()
	a.LastScrapeDuration = took.Seconds()
	return a
}
