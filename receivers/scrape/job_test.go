package scrape

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"go.yaml.in/yaml/v4"
)

// TestJobOfATarget: a target belongs to the job that it is configured in, also where a group of
// targets has another label job, and no sample, target or configuration shows how that is known.
func TestJobOfATarget(t *testing.T) {
	target, m := show(t, "a 1\n"), newMemory()
	j := jobs(t, fmt.Sprintf("{job_name: \"a$1$$b\", relabel_configs: [{action: labelkeep, regex: __.*|job}], static_configs: [{targets: [%q], labels: {job: theirs}}]}", target.addr()))
	s, _, stop := run(t, m, j)
	series := fmt.Sprintf(`{__name__="a", instance=%q, job="theirs"}`, target.addr())
	until(t, "it is scraped", func() bool { return len(m.all(series)) > 0 })
	all := s.Status()
	stop()
	if got := slices.Collect(maps.Keys(m.jobs)); len(got) != 1 || got[0] != "a$1$$b" {
		t.Errorf("jobs %q", got)
	}
	if len(all) != 1 || len(all[0].Targets) != 1 || all[0].Targets[0].Labels.Len() != 2 {
		t.Errorf("%+v", all)
	}
	text, err := yaml.Dump(j)
	if err != nil || strings.Contains(string(text), "hwsagent") || !strings.Contains(string(text), "labelkeep") {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestFiltered: samples that metric_relabel_configs drop are counted, at each scrape; failed scrapes
// and repeated samples are not.
func TestFiltered(t *testing.T) {
	target, m := show(t, "a 1\na 2\nnoise 1\nnoise{n=\"2\"} 2\n"), newMemory()
	_, _, stop := run(t, m, jobs(t, strings.Replace(job("j", target), "{job_name", "{metric_relabel_configs: [{source_labels: [__name__], regex: noise, action: drop}], job_name", 1)))
	until(t, "two scrapes", func() bool { return len(m.all(upOf)) >= 2 })
	target.set("noise 1\nnoise{ 2\n", nil)
	until(t, "a failed one", func() bool { all := m.all(upOf); return all[len(all)-1].v == 0 })
	stop()
	well := 0
	for _, s := range m.all(upOf) {
		if s.v == 1 {
			well++
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dropped != 2*well {
		t.Errorf("%d are counted in %d scrapes, want %d", m.dropped, well, 2*well)
	}
}

// TestLargeScrapeRefused: where a scrape is several commits and the log takes the first one not,
// the scrape goes on, as one that is refused as a whole does.
func TestLargeScrapeRefused(t *testing.T) {
	m := newMemory()
	s := newSink(m.out, slog.New(slog.DiscardHandler))
	a := s.begin(t.Context(), "", time.Second)
	add := func(name string) {
		t.Helper()
		if _, err := a.Append(0, labels.FromStrings("__name__", name), 0, 1, 1, nil, nil, storage.AOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	add("first")
	a.bytes = commitBytes + 1
	m.fill(true)
	add("second")
	if m.refused != 1 {
		t.Fatal("the fault did not fire")
	}
	m.fill(false)
	if a.commit(); len(m.all(`{__name__="second"}`)) != 1 || testutil.ToFloat64(s.refused.WithLabelValues("")) != 1 {
		t.Errorf("%v", m.commits)
	}
}

// TestReloadDoesNotWait: a reload is in force at once, also while a scrape hangs; that one ends by
// its old configuration. A stop waits for neither.
func TestReloadDoesNotWait(t *testing.T) {
	target, m := show(t, "a 1\n"), newMemory()
	release := make(chan struct{})
	defer close(release)
	target.set("a 1\n", release)
	slow := func(more string) *Jobs {
		return jobs(t, fmt.Sprintf("{job_name: j, scrape_interval: 9s, scrape_timeout: 9s, %s static_configs: [{targets: [%q]}]}", more, target.addr()))
	}
	s, _, stop := run(t, m, slow(""))
	until(t, "the scrape hangs", func() bool { return target.asked() > 0 })
	if err := s.Apply(slow("honor_labels: true,")); err != nil {
		t.Fatal(err)
	}
	until(t, "the change is in force", func() bool {
		s.mu.Lock()
		p := s.pools["j"]
		s.mu.Unlock()
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.cfg.HonorLabels
	})
	began := time.Now()
	stop()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("stopping took %v", took)
	}
}
