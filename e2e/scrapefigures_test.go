package e2e

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"hwsagent/internal/tools/results"
)

// TestScrapeFigures measures the built agent scraping 50,000 series each 5 s on one core. It
// needs HWSAGENT_BENCH (60s, say).
func TestScrapeFigures(t *testing.T) {
	steady := durationOf(t, "HWSAGENT_BENCH", 0)
	if steady == 0 {
		t.Skip("a measurement of a minute: run by hand, see internal/tools/README.md (HWSAGENT_BENCH)")
	}
	var config strings.Builder
	config.WriteString("global: {scrape_interval: 5s, scrape_timeout: 5s, external_labels: {site: fra1}}\nweb: {pprof: true}\nprobes:\n  - {name: hwsagent, type: self, enabled: false}\n" +
		"scrape_configs:\n  - job_name: heavy\n    static_configs:\n")
	for i := range heavyProbes {
		page := httptest.NewServer(pages(i))
		defer page.Close()
		fmt.Fprintf(&config, "      - targets: [%s]\n        labels: {rack: b4, role: storage}\n", strings.TrimPrefix(page.URL, "http://"))
	}
	to := newCounter(t)
	fmt.Fprintf(&config, "remote_write:\n  - {name: receiver, url: %q}\n", to.url())
	a := newAgent(t, config.String())
	a.env = append(a.env, "GOMAXPROCS=1")
	a.run()
	t.Cleanup(a.kill)
	eventually(t, time.Minute, func() string {
		if to.samples.Load() < 2*heavyProbes*heavySeries {
			return "the load has not settled"
		}
		return ""
	})
	begin := meter(a, to)
	stop := profile(a, "scrape", steady)
	time.Sleep(steady) // what is measured
	got := meter(a, to).since(begin)
	stop()
	cpu := got.cpu.Seconds() / float64(got.samples) * 1e6
	series := float64(heavyProbes * heavySeries)
	rss := float64(a.rss())
	report(t, "CPU seconds per million samples, scrape to sent", 1.8, cpu)
	report(t, "percent of one core", 30, 100*got.cpu.Seconds()/steady.Seconds())
	report(t, "RSS in MB", 55, rss/1e6)
	report(t, "bytes of RSS per series", 4000, rss/series)
	t.Logf("%d samples in %s", got.samples, steady)
	if want := int64(series * (steady.Seconds() - 5) / 5); got.samples < want {
		t.Errorf("%d samples came, want at least %d: it does not keep up", got.samples, want)
	}
	results.Add(t, results.Line{What: "50,000 series scraped each 5 s on one core", Count: int(got.samples), Figures: map[string]float64{
		"cpu_seconds_per_million": cpu, "percent_of_a_core": 100 * got.cpu.Seconds() / steady.Seconds(), "rss_bytes_per_series": rss / series,
	}})
}

// pages shows heavySeries series as a node exporter does, a fifth of them with a new value on
// each scrape.
func pages(host int) http.Handler {
	random := rand.New(rand.NewPCG(1, uint64(host)))
	values := make([]float64, heavySeries)
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var b strings.Builder
		for i := range values {
			if i%100 == 0 {
				fmt.Fprintf(&b, "# HELP node_family_%d_total What the family is about, in a sentence.\n# TYPE node_family_%[1]d_total counter\n", i/100)
			}
			if random.IntN(5) == 0 {
				values[i] += float64(random.IntN(1e6)) / 1000
			}
			fmt.Fprintf(&b, "node_family_%d_total{device=\"nvme%dn1\",mode=\"write\"} %v\n", i/100, i%100, values[i])
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, b.String())
	})
}
