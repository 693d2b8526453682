package scrape

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/scrape"
)

// Job is one scrape configuration and what it scrapes.
type Job struct {
	Name    string
	Targets []Target // in the order of their addresses
	Dropped int      // targets that relabelling removed
	// Error is why the job cannot be started; it is tried again. Empty if it could.
	Error string
}

// Target is one address that is scraped.
type Target struct {
	URL       string
	Labels    labels.Labels
	Health    string // up, down, unknown
	Last      time.Time
	Took      time.Duration
	LastError string
	Interval  string
}

// snapshot is what the manager has, as pointers: the targets' states stay up to date.
type snapshot struct {
	active, dropped map[string][]*scrape.Target
	counts          map[string]int
}

// snapshot returns what the manager has, or had when it was last free to tell.
func (s *Scraper) snapshot() snapshot {
	s.mu.Lock()
	m, shown := s.scrapes, s.shown
	s.mu.Unlock()
	if m == nil || s.busy.Load() {
		return shown
	}
	shown = snapshot{m.TargetsActive(), m.TargetsDropped(), m.TargetsDroppedCounts()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown = shown
	return shown
}

// Status tells of the jobs, in the order of the configuration.
func (s *Scraper) Status() []Job {
	shown := s.snapshot()
	s.mu.Lock()
	jobs := s.latest
	s.mu.Unlock()
	var all []Job
	var bad map[string]error
	b := labels.NewBuilder(labels.EmptyLabels())
	for _, name := range jobs.Names() {
		j := Job{Name: name, Dropped: shown.counts[name]}
		if _, started := shown.active[name]; !started {
			if bad == nil {
				bad = jobs.clientErrors()
			}
			if err := bad[name]; err != nil {
				j.Error = err.Error()
			}
		}
		for _, t := range sorted(shown.active[name]) {
			v := Target{
				URL: t.URL().String(), Labels: t.Labels(b), Health: string(t.Health()), Last: t.LastScrape(),
				Took: t.LastScrapeDuration(), Interval: t.GetValue(model.ScrapeIntervalLabel),
			}
			if err := t.LastError(); err != nil {
				v.LastError = err.Error()
			}
			j.Targets = append(j.Targets, v)
		}
		all = append(all, j)
	}
	return all
}

// sorted is a copy in the order of the addresses: the manager keeps targets in a map.
func sorted(targets []*scrape.Target) []*scrape.Target {
	byURL := make(map[*scrape.Target]string, len(targets))
	for _, t := range targets {
		byURL[t] = t.URL().String() + " " + t.String()
	}
	return slices.SortedFunc(slices.Values(targets), func(a, b *scrape.Target) int { return strings.Compare(byURL[a], byURL[b]) })
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

// ServeHTTP answers GET /api/v1/targets as Prometheus does, the parameters state (active,
// dropped, any) and scrapePool included. A globalUrl is the scrapeUrl: the agent has no
// external address to put in the place of localhost.
func (s *Scraper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	shown := s.snapshot()
	pool, state := r.URL.Query().Get("scrapePool"), strings.ToLower(r.URL.Query().Get("state"))
	data := targetsData{Active: []activeTarget{}, Dropped: []droppedTarget{}}
	b := labels.NewBuilder(labels.EmptyLabels())
	if state == "" || state == "any" || state == "active" {
		for _, name := range pools(shown.active, pool) {
			for _, t := range sorted(shown.active[name]) {
				a := activeTarget{
					DiscoveredLabels: t.DiscoveredLabels(b), Labels: t.Labels(b), ScrapePool: name,
					ScrapeURL: t.URL().String(), GlobalURL: t.URL().String(),
					LastScrape: t.LastScrape(), LastScrapeDuration: t.LastScrapeDuration().Seconds(), Health: string(t.Health()),
					ScrapeInterval: t.GetValue(model.ScrapeIntervalLabel), ScrapeTimeout: t.GetValue(model.ScrapeTimeoutLabel),
				}
				if err := t.LastError(); err != nil {
					a.LastError = err.Error()
				}
				data.Active = append(data.Active, a)
			}
		}
	}
	if state == "" || state == "any" || state == "dropped" {
		data.DroppedCounts = map[string]int{}
		maps.Copy(data.DroppedCounts, shown.counts)
		for _, name := range pools(shown.dropped, pool) {
			for _, t := range shown.dropped[name] {
				data.Dropped = append(data.Dropped, droppedTarget{t.DiscoveredLabels(b), name})
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

// pools are the names in m, in order; only is the one that is wanted, "" for all.
func pools(m map[string][]*scrape.Target, only string) []string {
	var names []string
	for name := range m {
		if only == "" || name == only {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
