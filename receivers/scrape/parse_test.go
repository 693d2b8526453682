package scrape

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/storage"
)

// passOf is a pass over a page of a target, by the settings of an entry.
func passOf(t *testing.T, m *memory, c *cache, entry string) (*pass, *appender) {
	t.Helper()
	return passBy(t, m, c, configOf(t, entry))
}

func passBy(t *testing.T, m *memory, c *cache, cfg *settings) (*pass, *appender) {
	t.Helper()
	tg, err := newTarget(labels.NewBuilder(labels.EmptyLabels()), cfg, model.LabelSet{"__address__": "a:1", "instance": "i"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	batch := newSink(m.out, slog.New(slog.DiscardHandler)).begin(t.Context(), "j", time.Minute)
	return &pass{
		reading: newReading(cfg, tg, false), ctx: t.Context(), target: tg, cache: c, to: batch, metrics: newMetrics(),
		builder: labels.NewBuilder(labels.EmptyLabels()), t: 1000, latest: 601_000,
	}, batch
}

// TestPageRefused: each limit and each mistake fails the page, and is counted.
func TestPageRefused(t *testing.T) {
	for name, tc := range map[string]struct{ entry, page, want, metric string }{
		"sample_limit":        {"sample_limit: 2, ", "a 1\nb 1\nc 1\nd 1\n", "sample limit exceeded", "samples"},
		"label_limit":         {"label_limit: 3, ", "a{x=\"1\"} 1\n", "label_limit exceeded (metric: a, number of labels: 4, limit: 3)", "labels"},
		"name length":         {"label_name_length_limit: 9, ", "a{long_label=\"1\"} 1\n", "label_name_length_limit exceeded", "labels"},
		"value length":        {"label_value_length_limit: 3, ", "a{x=\"1234\"} 1\n", "label_value_length_limit exceeded", "labels"},
		"no name":             {"metric_relabel_configs: [{action: labeldrop, regex: __name__}], ", "a 1\n", "missing metric name", ""},
		"names":               {"metric_name_validation_scheme: legacy, ", "{\"a.b\"} 1\n", "invalid metric name", ""},
		"text":                {"", "a 1\nb{ 1\n", "expected", ""},
		"a long series":       {"", "a 1\nb{x=\"" + strings.Repeat("y", maxSeriesBytes-6) + "\"} 1\n", "the labels have 65537 bytes, more than the 65536", ""},
		"type":                {"", "", "", ""},
		"rules that lengthen": {"metric_relabel_configs: [{source_labels: [x], target_label: x, replacement: '" + strings.Repeat("$1", 200) + "'}], ", "a{x=\"" + strings.Repeat("y", 6000) + "\"} 1\n", "after relabelling rule 1", ""},
	} {
		p, batch := passOf(t, newMemory(), newCache(), "{"+tc.entry+"job_name: j}")
		err := p.page([]byte(tc.page), "text/plain")
		batch.rollback()
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
		got := map[bool]string{true: "samples"}[testutil.ToFloat64(p.metrics.samples) == 1] + map[bool]string{true: "labels"}[testutil.ToFloat64(p.metrics.labelLimits) == 1]
		if got != tc.metric {
			t.Errorf("%s: %q is counted, want %q", name, got, tc.metric)
		}
	}
	p, batch := passOf(t, newMemory(), newCache(), "{job_name: j}")
	defer batch.rollback()
	if err := p.page([]byte("a 1\n"), "text/html"); err == nil || !strings.Contains(err.Error(), "text/html") {
		t.Errorf("another content type: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.ctx = ctx
	if err := p.page([]byte("a 1\n"), "text/plain"); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

// TestStopEndsStaleMarkers: a stop does not wait until all series of a target whose scrape failed have their stale markers.
func TestStopEndsStaleMarkers(t *testing.T) {
	m, c := newMemory(), newCache()
	p, batch := passOf(t, m, c, "{job_name: j}")
	if err := p.page([]byte("a 1\nb 1\n"), "text/plain"); err != nil {
		t.Fatal(err)
	}
	batch.commit()
	p, batch = passOf(t, m, c, "{job_name: j}")
	ctx, cancel := context.WithCancel(t.Context())
	batch.ctx = ctx
	cancel()
	if err := p.nothing(); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	batch.commit()
	if len(slices.Concat(m.commits...)) != 2 {
		t.Errorf("markers after the end: %v", m.commits)
	}
}

// TestPagesInAnyOrder: a page's order is a hint only. Series that move, come, go and come again are
// stored alike, and end when they go.
func TestPagesInAnyOrder(t *testing.T) {
	m, c := newMemory(), newCache()
	pages := []string{"a b c d", "d c b a", "a c", "b", "x a b c d", "", "c a", "c a a", "", "", "a b", "b", "", "", "", "a", "", "a b"}
	alive := map[string]bool{}
	for i, page := range pages {
		p, batch := passOf(t, m, c, "{job_name: j}")
		p.t = int64(1000 * (i + 1))
		var text strings.Builder
		shown := map[string]bool{}
		for _, name := range strings.Fields(page) {
			fmt.Fprintf(&text, "%s %d\n", name, i)
			shown[name] = true
		}
		err := p.page([]byte(text.String()), "text/plain")
		if page == "" {
			err = p.nothing()
		}
		if err != nil {
			t.Fatal(err)
		}
		batch.commit()
		m.mu.Lock()
		var newest []sample
		if len(m.commits) > 0 {
			newest = m.commits[len(m.commits)-1]
		}
		m.mu.Unlock()
		got := map[string]string{}
		for _, s := range newest {
			got[s.series[len(`{__name__="`):len(`{__name__="`)+1]] += map[bool]string{true: "ends", false: "is"}[s.stale]
		}
		want := map[string]string{}
		for name := range shown {
			want[name] = "is"
		}
		for name := range alive {
			if !shown[name] {
				want[name] = "ends"
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("page %d %q: %v, want %v", i, page, got, want)
		}
		alive = shown
	}
}

// TestCacheIsBounded: scrapes that fail and show other series each time do not fill the memory.
func TestCacheIsBounded(t *testing.T) {
	c := newCache()
	for i := range 50 {
		p, batch := passOf(t, newMemory(), c, "{job_name: j}")
		var text strings.Builder
		for n := range 300 {
			fmt.Fprintf(&text, "a{n=\"%d.%d\"} 1\n", i, n)
		}
		if err := p.page([]byte(text.String()+"{"), "text/plain"); err == nil {
			t.Fatal("the page is good")
		}
		batch.rollback()
		if err := p.nothing(); err != nil {
			t.Fatal(err)
		}
	}
	if n := c.series.Len(); n > 1500 {
		t.Errorf("%d series are remembered", n)
	}
}

// remembered are the names of the series in a cache.
func remembered(m *memory, c *cache) (names []string) {
	for _, s := range c.series.All() {
		names = append(names, m.labels[s.ref].Get("__name__"))
	}
	slices.Sort(names)
	return names
}

// Series that the input refuses, since it has as many as it may, are not remembered; they are taken as soon
// as others have ended.
func TestRefusedSeriesTakeNoMemory(t *testing.T) {
	m, c := newMemory(), newCache()
	m.most = 2
	for i, want := range []struct {
		page, kept  string
		taken, post int
	}{
		{"a b c d", "a b", 2, 4},
		{"a b c d e", "a b", 2, 5},
		{"d c b a", "a b", 2, 4},
		{"c b", "b", 2, 2}, // a ends here
		{"c b d", "b c", 2, 3},
		{"c d", "c", 2, 2},
		{"c d", "c d", 2, 2},
	} {
		p, batch := passOf(t, m, c, "{job_name: j}")
		p.t = int64(1000 * (i + 1))
		page := strings.ReplaceAll(want.page, " ", " 1\n") + " 1\n"
		if err := p.page([]byte(page), "text/plain"); err != nil {
			t.Fatal(err)
		}
		batch.commit()
		if got := strings.Join(remembered(m, c), " "); got != want.kept {
			t.Errorf("page %d, %q: %q are remembered, want %q", i, want.page, got, want.kept)
		}
		if got := len(m.commits[len(m.commits)-1]); got != want.taken || p.outcome.kept != want.post {
			t.Errorf("page %d, %q: %d samples are committed and %d counted, want %d and %d", i, want.page, got, p.outcome.kept, want.taken, want.post)
		}
	}
}

// TestLogForgets: whatever the log forgets between scrapes, it gets the samples, families, exemplars and stale markers that a log
// gets that forgets nothing; only the markers of forgotten series are missing.
func TestLogForgets(t *testing.T) {
	const types = "# HELP a Of a.\n# TYPE a counter\na_total{x=\"1\"} 1EX\na_total{x=\"2\",job=\"own\"} 2 TIME\n# TYPE h histogram\nh_bucket{le=\"1\"} 1EX\nh_bucket{le=\"+Inf\"} 2\nh_sum 3\nh_count 2\n# TYPE g gauge\ng{y=\"ü\"} 1\ng 2\nother 3\n"
	text := strings.NewReplacer("EX", "", "TIME", "1500", "# TYPE a counter", "# TYPE a_total counter", "# HELP a ", "# HELP a_total ").Replace(types)
	open := strings.NewReplacer("EX", " # {id=\"SCRAPE\"} 1 1", "TIME", "1.5", "other", "# TYPE a_other unknown\na_other").Replace(types) + "# EOF\n"
	for name, tc := range map[string]struct{ entry, page, kind string }{
		"text":                 {"", text, "text/plain; version=0.0.4"},
		"text, relabelled":     {"metric_relabel_configs: [{source_labels: [__name__], regex: 'g(.*)', target_label: __name__, replacement: 'a$1'}, {action: drop, source_labels: [y], regex: .+}], ", text, "text/plain; version=0.0.4"},
		"text, converted":      {"convert_classic_histograms_to_nhcb: true, ", text, "text/plain; version=0.0.4"},
		"text, honor_labels":   {"honor_labels: true, sample_limit: 20, label_limit: 5, ", text, "text/plain; version=0.0.4"},
		"OpenMetrics":          {"", open, "application/openmetrics-text; version=1.0.0"},
		"OpenMetrics, no time": {"honor_timestamps: false, convert_classic_histograms_to_nhcb: true, ", open, "application/openmetrics-text; version=1.0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			r := rand.New(rand.NewPCG(seed, 0))
			type side struct {
				m *memory
				c *cache
				s *sink
			}
			made := func() side {
				m := newMemory()
				return side{m, newCache(), newSink(m.out, slog.New(slog.DiscardHandler))}
			}
			knows, forgets := made(), made()
			forgotten, exemplars := 0, 0
			for scrape := range 40 {
				lines := strings.SplitAfter(strings.ReplaceAll(tc.page, "SCRAPE", fmt.Sprint(scrape)), "\n")
				if i := r.IntN(2 * len(lines)); i < len(lines)-2 && strings.Contains(lines[i], "\"ü\"") {
					lines = slices.Delete(lines, i, i+1)
				}
				forget := r.IntN(3) == 0
				if forget {
					forgets.m.forget()
					forgotten++
				}
				var all [2][]sample
				for i, on := range []side{knows, forgets} {
					p, _ := passOf(t, on.m, on.c, "{"+tc.entry+"job_name: j}")
					p.to = on.s.begin(t.Context(), "j", time.Minute)
					p.t, p.startTimes = int64(1000*(scrape+2)), true
					if err := p.page([]byte(strings.Join(lines, "")), tc.kind); err != nil {
						t.Fatal(err)
					}
					p.to.commit()
					all[i] = on.m.commits[len(on.m.commits)-1]
				}
				if forget {
					all[0] = slices.DeleteFunc(all[0], func(s sample) bool { return s.stale })
				}
				for i := range all[0] {
					exemplars += all[0][i].exemplars
					if a, b := all[0][i], all[1][i]; a.series != b.series || a.family != b.family || a.t != b.t || a.stale != b.stale || !a.stale && a.v != b.v || a.exemplars != b.exemplars {
						t.Fatalf("scrape %d: %+v, want %+v", scrape, b, a)
					}
				}
				if len(all[0]) < 5 || len(all[0]) != len(all[1]) {
					t.Fatalf("scrape %d: %d samples, want %d", scrape, len(all[1]), len(all[0]))
				}
			}
			if forgotten == 0 || exemplars == 0 && strings.Contains(tc.page, "SCRAPE") {
				t.Errorf("the log has forgotten %d times; %d exemplars", forgotten, exemplars)
			}
		})
	}
}

// TestForgottenExemplars: a sample that is appended again, with labels, still has its new exemplars, and only these.
func TestForgottenExemplars(t *testing.T) {
	m := newMemory()
	s := newSink(m.out, slog.New(slog.DiscardHandler))
	ls := labels.FromStrings("__name__", "a")
	exemplars := []exemplar.Exemplar{{Labels: labels.FromStrings("id", "1"), Ts: 1}, {Labels: labels.FromStrings("id", "2"), Ts: 2}, {Labels: labels.FromStrings("id", "3"), Ts: 3}}
	a := s.begin(t.Context(), "j", time.Minute)
	ref, err := a.Append(0, ls, 0, 1, 1, nil, nil, storage.AOptions{Exemplars: exemplars[:1]})
	if err != nil {
		t.Fatal(err)
	}
	m.forget()
	o := storage.AOptions{Exemplars: exemplars}
	if _, err := a.Append(ref, labels.EmptyLabels(), 0, 2, 2, nil, nil, o); !errors.Is(err, storage.ErrNotFound) {
		t.Fatal(err)
	}
	if _, err := a.Append(ref, ls, 0, 2, 2, nil, nil, o); err != nil {
		t.Fatal(err)
	}
	a.commit()
	if got := m.commits[0]; len(got) != 2 || got[0].exemplars != 1 || got[1].exemplars != 2 {
		t.Errorf("%+v", got)
	}
}

// TestEndsAreForgotten: a series that the log has forgotten needs no stale marker, neither of a page nor of one that waits for a commit.
func TestEndsAreForgotten(t *testing.T) {
	m, c := newMemory(), newCache()
	s := newSink(m.out, slog.New(slog.DiscardHandler))
	for i, page := range []string{"a 1\nb 1\nc 1\n", "b 1\nc 1\n", "c 1\n", "c 1\n"} {
		if i == 1 || i == 3 {
			m.forget()
		}
		m.fill(i == 2)
		p, _ := passOf(t, m, c, "{job_name: j}")
		p.to, p.t = s.begin(t.Context(), "j", time.Minute), int64(1000*(i+1))
		if err := p.page([]byte(page), "text/plain"); err != nil {
			t.Fatal(err)
		}
		p.to.commit()
	}
	if m.refused != 1 || len(m.commits) != 3 {
		t.Fatalf("%d commits, %d were refused", len(m.commits), m.refused)
	}
	for _, commit := range m.commits {
		for _, s := range commit {
			if s.stale {
				t.Errorf("a marker of a series that was forgotten: %+v", s)
			}
		}
	}
}

func TestFamilyHas(t *testing.T) {
	for _, tc := range []struct {
		family string
		kind   model.MetricType
		yes    string
		no     string
	}{
		{"a", model.MetricTypeGauge, "a", "a_total ab b a_sum"},
		{"a", model.MetricTypeCounter, "a a_total", "a_created ab"},
		{"a_total", model.MetricTypeCounter, "a_total", "a ab_total"},
		{"a", model.MetricTypeHistogram, "a a_bucket a_sum a_count", "a_gsum a_total"},
		{"a", model.MetricTypeGaugeHistogram, "a a_bucket a_gsum a_gcount", "a_sum"},
		{"a", model.MetricTypeSummary, "a a_sum a_count", "a_bucket"},
		{"a", model.MetricTypeInfo, "a a_info", "a_sum"},
	} {
		f := &family{name: tc.family, meta: metadata.Metadata{Type: tc.kind}}
		for _, name := range strings.Fields(tc.yes) {
			if !f.has(name) {
				t.Errorf("%s %s lacks %s", tc.kind, tc.family, name)
			}
		}
		for _, name := range strings.Fields(tc.no) {
			if f.has(name) {
				t.Errorf("%s %s has %s", tc.kind, tc.family, name)
			}
		}
	}
}

// TestFamiliesInAnyOrder: a sample has the same family whatever the cache knows of the order of pages.
func TestFamiliesInAnyOrder(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	m, c := newMemory(), newCache()
	full := strings.SplitAfter("# TYPE a gauge\na{x=\"1\"} 1\na{x=\"2\"} 1\na{x=\"3\"} 1\n# TYPE b counter\nb 1\nb_total{x=\"1\"} 1\nb_total{x=\"2\"} 1\n# TYPE c gauge\nc 1\nd 1\n", "\n")
	lines, with, without := slices.Clone(full), 0, 0
	for scrape := range 800 {
		if scrape%20 == 0 {
			lines = slices.Clone(full)
		}
		switch n := len(lines) - 1; r.IntN(6) {
		case 0:
			i, k := r.IntN(n), r.IntN(n)
			lines[i], lines[k] = lines[k], lines[i]
		case 1:
			if i := r.IntN(n); n > 3 {
				lines = slices.Delete(lines, i, i+1)
			}
		case 2:
			one := []string{"# TYPE a gauge\n", "# TYPE b counter\n", "a{x=\"4\"} 1\n", "a{x=\"2\"} 1\n", "b_total{x=\"2\"} 1\n", "c 1\n"}[r.IntN(6)]
			lines = slices.Insert(lines, r.IntN(n+1), one)
		}
		page := strings.Join(lines, "")
		shown := func(m *memory, c *cache) (all []string) {
			p, batch := passOf(t, m, c, "{job_name: j}")
			p.t = int64(1000 * (scrape + 1))
			if err := p.page([]byte(page), "text/plain; version=0.0.4"); err != nil {
				t.Fatal(err)
			}
			batch.commit()
			for _, s := range m.commits[len(m.commits)-1] {
				if !s.stale {
					all = append(all, s.series+" of "+s.family)
				}
			}
			return all
		}
		got, want := shown(m, c), shown(newMemory(), newCache())
		if !slices.Equal(got, want) {
			t.Fatalf("scrape %d of\n%s\n%q, want %q", scrape, page, got, want)
		}
		for _, s := range want {
			if strings.HasSuffix(s, " of ") {
				without++
			} else {
				with++
			}
		}
	}
	if with < 1000 || without < 1000 {
		t.Errorf("%d samples have a family, %d have none", with, without)
	}
}

// TestFit: a native histogram with too many buckets becomes coarser, until it cannot.
func TestFit(t *testing.T) {
	made := func(schema int32, buckets int) point {
		h := &histogram.Histogram{Schema: schema, PositiveSpans: []histogram.Span{{Offset: 0, Length: uint32(buckets)}}, PositiveBuckets: make([]int64, buckets)}
		h.PositiveBuckets[0], h.Count = 1, uint64(buckets)
		return point{h: h}
	}
	for _, tc := range []struct {
		lim            limits
		schema         int32
		buckets        int
		wantSchema     int32
		wantMax        int
		fails, inFloat bool
	}{
		{limits{schema: 8}, 8, 100, 8, 100, false, false},
		{limits{schema: 8, buckets: 100}, 8, 100, 8, 100, false, false},
		{limits{schema: 8, buckets: 30}, 8, 100, 6, 30, false, false},
		{limits{schema: 3}, 8, 100, 3, 100, false, false},
		{limits{schema: 8, buckets: 1}, -4, 100, -4, 100, true, false},
		{limits{schema: 3}, 8, 100, 3, 100, false, true},
	} {
		v := made(tc.schema, tc.buckets)
		if tc.inFloat {
			v = point{fh: v.h.ToFloat(nil)}
		}
		err := tc.lim.fit(v)
		schema, buckets := sizeOf(v)
		if (err != nil) != tc.fails || schema != tc.wantSchema || buckets > tc.wantMax {
			t.Errorf("%+v: schema %d with %d buckets, %v", tc, schema, buckets, err)
		}
	}
	for factor, want := range map[float64]int32{0: 8, 1: 8, 1.0027: 8, 1.1: 2, 2: 0, 65537: -4, 1e300: -4} {
		if got := schemaOf(factor); got != want {
			t.Errorf("schema of the factor %v is %d, want %d", factor, got, want)
		}
	}
}

// TestRequest: what a target is asked with, and which answers are pages.
func TestRequest(t *testing.T) {
	var header http.Header
	var answer func(w http.ResponseWriter)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header
		answer(w)
	}))
	defer s.Close()
	zipped := func(text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "gzip")
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			_, _ = z.Write([]byte(text))
			_ = z.Close()
			_, _ = w.Write(b.Bytes())
		}
	}
	plain := func(text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { fmt.Fprint(w, text) }
	}
	for name, tc := range map[string]struct {
		entry      string
		answer     func(http.ResponseWriter)
		page, fail string
	}{
		"plain":           {"", plain("a 1\n"), "a 1\n", ""},
		"gzip":            {"", zipped("a 1\n"), "a 1\n", ""},
		"below the limit": {"body_size_limit: 5B, ", plain("a 1\n"), "a 1\n", ""},
		"at the limit":    {"body_size_limit: 4B, ", plain("a 1\n"), "", "body size limit"},
		"a bomb":          {"body_size_limit: 1MB, ", zipped(strings.Repeat("a", 1<<20)), "", "body size limit"},
		"not gzip":        {"", func(w http.ResponseWriter) { w.Header().Set("Content-Encoding", "gzip"); fmt.Fprint(w, "a 1\n") }, "", "decompress"},
		"zstd":            {"", func(w http.ResponseWriter) { w.Header().Set("Content-Encoding", "zstd"); fmt.Fprint(w, "a 1\n") }, "", "zstd"},
		"a status":        {"", func(w http.ResponseWriter) { w.WriteHeader(404) }, "", "404 Not Found"},
		"no redirect":     {"follow_redirects: false, ", func(w http.ResponseWriter) { w.Header().Set("Location", "/x"); w.WriteHeader(302) }, "", "302"},
	} {
		answer = tc.answer
		page, err := getAt(t, "{"+tc.entry+"job_name: j}", s.URL)
		if tc.fail == "" && (err != nil || page != tc.page) || tc.fail != "" && (err == nil || !strings.Contains(err.Error(), tc.fail)) {
			t.Errorf("%s: %q, %v", name, page, err)
		}
	}
	answer = plain("")
	for entry, want := range map[string]map[string]string{
		"": {"Accept-Encoding": "gzip", "X-Prometheus-Scrape-Timeout-Seconds": "10",
			"Accept": "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.7,application/openmetrics-text;version=0.0.1;q=0.6,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.4,*/*;q=0.3"},
		"enable_compression: false, scrape_protocols: [PrometheusText0.0.4], ": {"Accept-Encoding": "identity", "Accept": "text/plain;version=0.0.4;q=0.7,*/*;q=0.6"},
	} {
		if _, err := getAt(t, "{"+entry+"job_name: j}", s.URL); err != nil {
			t.Fatal(err)
		}
		for name, value := range want {
			if got := header.Get(name); got != value {
				t.Errorf("%q: %s is %q, want %q", entry, name, got, value)
			}
		}
	}
}

// TestCacheLearnsTheOrder: through pages that show, lack, repeat and add series at any place, the series of the cache are afterwards
// those of the page, in its order.
func TestCacheLearnsTheOrder(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	c, page, moves, known := newCache(), []int(nil), 0, 0
	for scrape := range 300 {
		switch n := len(page); {
		case n > 0 && r.IntN(3) == 0:
			at := r.IntN(n)
			page = slices.Delete(page, at, at+min(r.IntN(5), n-at))
		case n > 1 && r.IntN(3) == 0:
			i, k := r.IntN(n), r.IntN(n)
			page[i], page[k] = page[k], page[i]
			moves++
		default:
			for range r.IntN(6) {
				page = slices.Insert(page, r.IntN(len(page)+1), 1000*scrape+len(page))
			}
		}
		for i, id := range page {
			for range 1 + r.IntN(8)/7 { // some twice
				text := []byte(fmt.Sprint("a{n=\"", id, "\"}"))
				s := c.find(text)
				if s == nil {
					made := c.seriesOf(text)
					made.ref = storage.SeriesRef(id + 1)
					s = c.add(made)
				} else {
					c.show(s)
					known++
				}
				if s.ref != storage.SeriesRef(id+1) || !c.shown(s) {
					t.Fatalf("scrape %d: line %d is of series %d, shown: %t", scrape, i, s.ref, c.shown(s))
				}
			}
		}
		c.end(true)
		var got []int
		for _, s := range c.series.All() {
			got = append(got, int(s.ref)-1)
		}
		if !slices.Equal(got, page) {
			t.Fatalf("scrape %d: the order is %v, want %v", scrape, got, page)
		}
	}
	if moves == 0 || known == 0 {
		t.Errorf("%d moves, %d known series", moves, known)
	}
}
