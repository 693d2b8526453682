package scrape

import (
	"testing"
	"time"
)

// FuzzPage: no page panics, hangs, or leaves the cache in a state that the next page trips over.
func FuzzPage(f *testing.F) {
	for _, page := range []string{
		"a 1\n", "# TYPE a counter\n# HELP a x\na_total{x=\"y\"} 1 5\na 2\n", "a{x=\"1\"} 1\na{x=\"1\"} 2\n",
		"# TYPE a counter\na_total 1\na_total 2 # {a=7\n# EOF\n", "# TYPE h histogram\nh_bucket{le=\"1\"} 1 # {a=\"b\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_count 2\nh_sum 3\n# EOF\n",
	} {
		for kind := range uint8(3) {
			f.Add([]byte(page), []byte("a 1\n"), kind)
		}
	}
	cfg := configOf(f, "{job_name: j, scrape_native_histograms: true, convert_classic_histograms_to_nhcb: true}")
	f.Fuzz(func(t *testing.T, first, second []byte, kind uint8) {
		types := []string{"text/plain", "application/openmetrics-text; version=1.0.0", "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"}
		began := time.Now()
		m, c := newMemory(), newCache()
		for _, page := range [][]byte{first, second, first} {
			p, batch := passBy(t, m, c, cfg)
			p.startTimes = true
			p.reading.parser.OpenMetricsSkipSTSeries = true
			if err := p.page(page, types[int(kind)%len(types)]); err != nil {
				batch.rollback()
				if err := p.nothing(); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if p.outcome.kept > p.outcome.scraped || p.outcome.added > p.outcome.kept {
				t.Errorf("counts %+v", p.outcome)
			}
			batch.commit()
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// FuzzLists: no list of targets panics, and none has more targets than a job may have.
func FuzzLists(f *testing.F) {
	f.Add([]byte(`[{"targets": ["a:1"], "labels": {"x": "y"}}, null]`))
	f.Add([]byte("- targets: [a:1, b:1]\n  labels: {x: y}\n- &a {targets: []}\n- *a\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, read := range []func([]byte) ([]listed, error){readJSON, readYAML} {
			list, err := read(text)
			if err != nil {
				continue
			}
			n := 0
			for _, g := range groups(list, "s", "__meta_x", "y", 3) {
				n += len(g.Targets)
			}
			if n > maxTargets {
				t.Errorf("%d targets", n)
			}
		}
	})
}
