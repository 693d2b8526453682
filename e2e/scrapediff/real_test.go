package scrapediff

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"go.yaml.in/yaml/v2"

	"hwsagent/agent/inputs"
	ours "hwsagent/receivers/scrape"
	"hwsagent/wal"
)

// stored is what one scraper left: samples and exemplars by series.
type stored struct {
	samples   map[string][]storedSample
	about     map[string]string // type, unit and help of a series at one of its samples, by aboutKey
	exemplars map[string][]string
	starts    map[string][]int64 // start timestamps, of the log only
}

type storedSample struct {
	t     int64
	value string
}

func (s *stored) add(ls labels.Labels, t int64, v string) {
	key := ls.String()
	s.samples[key] = append(s.samples[key], storedSample{t, v})
}

func aboutKey(series string, t int64) string { return fmt.Sprint(series, " @", t) }

func number(v float64) string {
	if value.IsStaleNaN(v) {
		return "stale"
	}
	return fmt.Sprint(v)
}

// byScrape returns what is stored with each time told as the number of the job's scrape, so that
// scrapes at other moments compare. A time that is no scrape's is the target's own. Scrapes
// after the pages of a job, and how long one took, are left out.
func (s *stored) byScrape(t *testing.T, pages map[string][]page) map[string][]string {
	times := map[string][]int64{} // of a job's scrapes
	for series, all := range s.samples {
		if strings.HasPrefix(series, "{__name__=\"scrape_samples_scraped\"") {
			job := jobOf(t, series)
			for _, one := range all {
				times[job] = append(times[job], one.t)
			}
			slices.Sort(times[job])
		}
	}
	told := map[string][]string{}
	for series, all := range s.samples {
		job := jobOf(t, series)
		own := times[job]
		if len(own) < len(pages[job]) {
			t.Fatalf("%d scrapes of %s, of %d", len(own), job, len(pages[job]))
		}
		last := own[len(pages[job])-1]
		sort.SliceStable(all, func(i, j int) bool { return all[i].t < all[j].t })
		for _, one := range all {
			// Of two series that relabelling makes one, the log refuses the second at once, a
			// TSDB when it commits: so the scrape has added one series more there.
			if job == "relabelled" && strings.HasPrefix(series, "{__name__=\"scrape_series_added\"") {
				continue
			}
			when := fmt.Sprintf("at %d", one.t)
			if n, found := slices.BinarySearch(own, one.t); found {
				if one.t > last {
					continue
				}
				when = fmt.Sprintf("scrape %d", n)
			}
			v := one.value
			if strings.HasPrefix(series, "{__name__=\"scrape_duration_seconds\"") && v != "stale" {
				v = "any"
			}
			told[series] = append(told[series], when+": "+v+", "+s.about[aboutKey(series, one.t)])
		}
	}
	return told
}

func jobOf(t *testing.T, series string) string {
	found := ownJob.FindStringSubmatch(series)
	if found == nil {
		t.Fatalf("series %s is of no job", series)
	}
	if found[1] == "mine" { // the target's own, which honor_labels keeps
		return "honor"
	}
	return found[1]
}

var ownJob = regexp.MustCompile(`[, ]job="(\w+)"`)

const common500 = `{"scrape_interval": "500ms", "scrape_timeout": "500ms"}`

// until waits for what comes by itself.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.NewTimer(2 * time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Errorf("timed out waiting until %s", what)
			return
		}
	}
}

// TestScrapeAsPrometheus scrapes one target with Prometheus' own scraper into its TSDB, which
// takes samples out of order, and with ours into the log: the same series, values, times and
// stale markers, in every format and with every option that changes what is stored.
func TestScrapeAsPrometheus(t *testing.T) {
	stamp := time.Now().Add(-time.Minute).Truncate(time.Second).UnixMilli()
	target := &scripted{pages: scripts(t, stamp), asked: map[string]int{}}
	server := httptest.NewServer(target)
	defer server.Close()
	addr := strings.TrimPrefix(server.URL, "http://")

	var theirs, ours *stored
	var both sync.WaitGroup
	both.Go(func() { theirs = scrapeByPrometheus(t, target, scriptJobs("theirs", addr)) })
	both.Go(func() { ours = scrapeByUs(t, target, scriptJobs("ours", addr)) })
	both.Wait()
	if t.Failed() {
		return
	}
	want, got := theirs.byScrape(t, target.pages), ours.byScrape(t, target.pages)
	if len(want) < 100 {
		t.Errorf("only %d series are compared", len(want))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what Prometheus stores (-) and the log has (+):\n%s", diff)
	}
	if len(theirs.exemplars) < 4 {
		t.Errorf("only %d series with exemplars are compared", len(theirs.exemplars))
	}
	if diff := cmp.Diff(theirs.exemplars, ours.exemplars); diff != "" {
		t.Errorf("exemplars that Prometheus stores (-) and the log has (+):\n%s", diff)
	}
	stale, native := 0, map[string]int{}
	for _, all := range want {
		for _, one := range all {
			for _, kind := range []string{"int", "float"} {
				if strings.Contains(one, ": "+kind+" {") {
					native[kind]++
				}
			}
			if strings.Contains(one, ": stale, ") {
				stale++
			}
		}
	}
	if native["int"] < 30 || native["float"] < 4 {
		t.Errorf("only %v native histograms are compared", native)
	}
	kinds := map[string]bool{}
	for _, text := range theirs.about {
		kinds[text] = true
	}
	if len(kinds) < 15 {
		t.Errorf("only %d different texts about series are compared", len(kinds))
	}
	if stale < 50 {
		t.Errorf("only %d stale markers are compared", stale)
	}
}

func newStored() *stored {
	return &stored{samples: map[string][]storedSample{}, about: map[string]string{}, exemplars: map[string][]string{}, starts: map[string][]int64{}}
}

// scrapeByUs returns what the log has of the jobs.
func scrapeByUs(t *testing.T, target *scripted, text string) *stored {
	var all struct {
		Global  yaml.MapSlice   `yaml:"global"`
		Entries []yaml.MapSlice `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal([]byte(text), &all); err != nil {
		t.Error(err)
		return nil
	}
	jobs, err := ours.NewJobs(model.Duration(500*time.Millisecond), model.Duration(500*time.Millisecond), ours.Global{})
	if err != nil {
		t.Error(err)
		return nil
	}
	for _, e := range all.Entries {
		one, err := yaml.Marshal(e)
		if err != nil {
			t.Error(err)
			return nil
		}
		addJob(t, jobs, string(one))
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Error(err)
		return nil
	}
	log, err := wal.Open(wal.Options{Dir: dir})
	if err != nil {
		t.Error(err)
		return nil
	}
	defer log.Close()
	reader, err := log.Reader("test", wal.ReaderOptions{})
	if err != nil {
		t.Error(err)
		return nil
	}
	defer reader.Close()
	path := inputs.NewPath(log, slog.New(slog.DiscardHandler))
	s := ours.New(ours.Options{Registerer: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
		Out: func(job string, interval time.Duration) storage.AppendableV2 {
			return path.Input("scrape", job, inputs.Settings{Interval: interval})
		}})
	if err := s.Apply(jobs); err != nil {
		t.Error(err)
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	until(t, "all pages were scraped by us", func() bool { return target.done("ours") })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	got := newStored()
	for head := log.Status().Head; ; {
		e, err := reader.Next(context.Background())
		if err != nil {
			t.Error(err)
			return nil
		}
		for _, x := range e.Samples {
			got.add(x.Series.Labels(), x.T, number(x.V))
			got.about[aboutKey(x.Series.Labels().String(), x.T)] = aboutText(x.Series.Meta())
			got.starts[x.Series.Labels().String()] = append(got.starts[x.Series.Labels().String()], x.ST)
		}
		for _, x := range e.Histograms {
			got.about[aboutKey(x.Series.Labels().String(), x.T)] = aboutText(x.Series.Meta())
			if x.H != nil {
				got.add(x.Series.Labels(), x.T, "int "+x.H.ToFloat(nil).Compact(0).String())
			} else {
				got.add(x.Series.Labels(), x.T, "float "+x.FH.Copy().Compact(0).String())
			}
		}
		for _, x := range e.Exemplars {
			got.exemplar(x.Series.Labels(), x.Labels, x.V)
		}
		if e.End.Commit >= head.Commit {
			return got
		}
	}
}

// exemplar notes one. Its time is left out, since it may be that of the scrape; so is the
// order, which a TSDB makes by time.
func (s *stored) exemplar(series, own labels.Labels, v float64) {
	key := series.String()
	s.exemplars[key] = append(s.exemplars[key], fmt.Sprint(own, v))
	slices.Sort(s.exemplars[key])
}
