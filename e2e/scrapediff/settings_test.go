package scrapediff

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

const (
	plain    = "text/plain; version=0.0.4; charset=utf-8"
	om1      = "application/openmetrics-text; version=1.0.0; charset=utf-8"
	om2      = "application/openmetrics-text; version=2.0.0; charset=utf-8"
	protobuf = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
)

// texts are pages of one kind.
func texts(kind string, bodies ...string) (all []answer) {
	for _, b := range bodies {
		if kind != plain {
			b += "# EOF\n"
		}
		all = append(all, answer{kind: kind, body: b})
	}
	return all
}

func zipped(body string) answer {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(body))
	_ = z.Close()
	return answer{kind: plain, body: b.String(), header: map[string]string{"Content-Encoding": "gzip"}}
}

// many are n series in an order that depends on the step between them.
func many(n, step, value int) string {
	var b strings.Builder
	b.WriteString("# HELP m_total Of m.\n# TYPE m_total counter\n")
	for i := range n {
		fmt.Fprintf(&b, "m_total{n=\"%d\",host=\"h\"} %d\n", i*step%n, value)
	}
	return b.String()
}

// TestTwins compares what both scrapers store of pages that change in every way, by every setting that decides about it.
func TestTwins(t *testing.T) {
	at := newTarget()
	defer at.Close()
	classic := "# HELP h Of h.\n# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_sum 3\nh_count 2\n"
	base := texts(plain, "# TYPE a_total counter\na_total{x=\"1\"} 1\na_total{x=\"2\"} 2\ng NaN\ninf +Inf\n", "a_total{x=\"1\"} 2\ng -Inf\n",
		"a_total{x=\"1\"} 3\na_total{x=\"2\"} 0\n", "a_total{x=\"1\"} 3\na_total{x=\"1\"} 4\n", "a_total{x=\"1\" 5\n", "a_total{x=\"1\"} 6\n{\"ü.name\",\"l.1\"=\"v\"} 7\n", "",
		"a_total{x=\"1\"} 8\nup 3\nconflict{job=\"mine\",instance=\"its\",exported_job=\"e\",rack=\"\"} 1\n", "a_total{x=\"\",y=\"1\"} 9\n", classic, classic)
	broken := texts(plain, many(50, 1, 1), many(50, 1, 2)+"b{ 1\n", many(50, 1, 3), "c 1\n"+many(20, 1, 1)+"}\n", many(30, 1, 4), "d 1\nb{", many(30, 7, 5))
	timed := texts(plain, "t 1 946684700000\nu 1\n", "t 1 946684700000\nu 2\n", "t 2 946684701000\n", "t 3 946684701000\nu 3\n", "t 4 946684700500\n", "u 4\n",
		"t 5 946684702000\nu 5 946684702000\n", "t 6 978307200000\nu 6\n", "u 7\n", "t 1\nt 2 946684703000\nt 3 946684703000\n", "t 5 -5\n")
	order := texts(plain, many(40, 1, 1), many(40, 3, 2), many(40, 7, 3), many(20, 3, 4), many(40, 1, 5), many(41, 1, 6), many(39, 2, 7), "x 1\n"+many(40, 1, 8)+"y 1\n", many(40, 1, 9), many(40, 1, 9)+many(40, 1, 10), many(40, 1, 11))
	lost := texts(plain, "a 1\nb 1\nc 1\n", "a 2\nc 2\n", "a 3\nb 3\nc 3\n", "c 4\n", "", "a 5\nb 5\nc 5\n", "a 6\nb 6\nc 6\n")
	labels := texts(plain, "s{v=\"1\"} 1\n", "s{v=\"2\"} 1\n", "s{v=\"1\"} 1\n", "s{v=\"1\",w=\"\"} 1\n", "s{w=\"\",v=\"1\"} 2\n", "s{v=\"1\" , w=\"2\"} 1\n", "s { v = \"1\" } 3\n", "s{v=\"1\"}\t4\n")
	open := texts(om1, "# TYPE c counter\n# HELP c Of c.\n# UNIT q_seconds seconds\n# TYPE q_seconds gauge\nq_seconds 1\nc_total{a=\"b\"} 1 # {trace_id=\"x\"} 0.5\nc_created{a=\"b\"} 1700000000.123\n",
		"# TYPE c counter\nc_total{a=\"b\"} 2\nc_created{a=\"b\"} 1700000001.123\n", "# TYPE i info\ni_info{v=\"1\"} 1\n# TYPE st stateset\nst{st=\"a\"} 1\nst{st=\"b\"} 0\n",
		"# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2 # {id=\"q\"} 9\nh_count 2\nh_sum 3\nh_created 17\n", "# TYPE s summary\ns{quantile=\"0.5\"} 1\ns_sum 2\ns_count 3\n",
		"# TYPE g gaugehistogram\ng_bucket{le=\"+Inf\"} 2\ng_gcount 2\ng_gsum 3\n", "a 1 1.5\na 2 2.5\n", "a 1\n\nb 2\n", "a  1\n")
	open = append(open, answer{kind: om1, body: "a 1\n"}, answer{kind: om1, body: "a 1\n# EOF\nb 2\n"})
	formats := []answer{
		{kind: plain, body: "h_bucket{le=\"1\"} 1\na{x=\"y\"} 1\n"}, {kind: om1, body: "a{x=\"y\"} 2\n# EOF\n"}, {kind: plain, body: "a{x=\"y\"} 3\n"}, {kind: "", body: "a 1\n"},
		{kind: "text/html", body: "a 1\n"}, {kind: "application/json", body: "{}"}, {kind: protobuf, body: "a 1\n"}, {kind: plain, body: "a{x=\"y\"} 4\n"}, {kind: om2, body: "a{x=\"y\"} 5\n# EOF\n"},
		{kind: plain, body: "a 1\n", status: 500}, {kind: plain, body: "a 1\n", status: 204}, {kind: plain, body: "a{x=\"y\"} 6\n"},
	}
	bodies := []answer{
		zipped("a 1\nb 1\n"), {kind: plain, body: "a 2\n", length: 100}, {kind: plain, body: "a 3\nb 3\nc 3\n", length: 4}, zipped(strings.Repeat("# nothing at all\n", 100_000) + "a 1\n"),
		zipped("a 5\n"), {kind: plain, body: "a 6\n", header: map[string]string{"Content-Encoding": "gzip"}}, {kind: plain, body: strings.Repeat("# x\n", 300_000) + "a 1\n"}, zipped("a 7\n"),
	}
	half := zipped(many(500, 1, 1))
	half.body = half.body[:len(half.body)/2]
	bodies = append(bodies, half, zipped("a 8\n"))
	const stamp = 946_684_700_000 // a bubble begins 100 s later
	of := func(pages []page) (all []answer) {
		for _, p := range pages {
			all = append(all, answer{kind: p.kind, body: p.body})
		}
		return append(all, answer{kind: protobuf, body: "\x00"}, all[0], answer{kind: plain, body: "proto_total 1\n"}, all[1])
	}
	metric := func(rules ...map[string]any) map[string]any { return map[string]any{"metric_relabel_configs": rules} }
	pages := map[string][]answer{"base": base, "broken": broken, "timed": timed, "order": order, "lost": lost, "labels": labels, "open": open, "formats": formats,
		"protobuf": of(nativePages(t, stamp)), "odd": of(oddPages(t, stamp))}
	settings := map[string]map[string]any{
		"":                           nil,
		"honor_labels":               {"honor_labels": true},
		"honor_timestamps":           {"honor_timestamps": false},
		"track":                      {"track_timestamps_staleness": true},
		"sample_limit":               {"sample_limit": 3, "extra_scrape_metrics": true},
		"label_limit":                {"label_limit": 5},
		"label_name_length_limit":    {"label_name_length_limit": 8},
		"label_value_length_limit":   {"label_value_length_limit": 3},
		"legacy":                     {"metric_name_validation_scheme": "legacy"},
		"fallback":                   {"fallback_scrape_protocol": "PrometheusText0.0.4"},
		"fallback to OpenMetrics":    {"fallback_scrape_protocol": "OpenMetricsText1.0.0"},
		"no compression":             {"enable_compression": false},
		"drop":                       metric(map[string]any{"source_labels": []string{"__name__"}, "regex": "g|inf|b|u|m_total", "action": "drop"}),
		"drop some":                  metric(map[string]any{"source_labels": []string{"n", "x"}, "regex": ".*[13579];.*|;1", "action": "drop"}),
		"join":                       metric(map[string]any{"source_labels": []string{"x"}, "target_label": "x", "replacement": "same"}, map[string]any{"regex": "n|v", "action": "labeldrop"}),
		"no name":                    metric(map[string]any{"regex": "__name__", "action": "labeldrop"}),
		"rename":                     metric(map[string]any{"source_labels": []string{"__name__"}, "target_label": "__name__", "replacement": "n_$1"}),
		"convert":                    {"convert_classic_histograms_to_nhcb": true},
		"convert and keep":           {"convert_classic_histograms_to_nhcb": true, "always_scrape_classic_histograms": true},
		"buckets":                    {"convert_classic_histograms_to_nhcb": true, "native_histogram_bucket_limit": 1},
		"native":                     {"scrape_native_histograms": true, "native_histogram_min_bucket_factor": 2},
		"target label of the sample": {"relabel_configs": []any{map[string]any{"target_label": "x", "replacement": "of the target"}, map[string]any{"target_label": "exported_job", "replacement": "z"}}},
	}
	stale, series := 0, 0
	compare := func(name string, pages []answer, settings map[string]any, st bool) {
		t.Run(name, func(t *testing.T) {
			diff, stored := differ(t, at, pages, settings, st)
			if diff != "" {
				t.Errorf("what Prometheus stores (-) and the agent does (+):\n%s", diff)
			}
			for _, all := range stored {
				series++
				for _, one := range all {
					if strings.Contains(one, ": stale, ") {
						stale++
					}
				}
			}
		})
	}
	for what, answers := range pages {
		for how, s := range settings {
			compare(what+" "+how, answers, s, false)
		}
		compare(what+" with start timestamps", answers, nil, true)
	}
	compare("body_size_limit", bodies, map[string]any{"body_size_limit": "1MB", "sample_limit": 1000, "extra_scrape_metrics": true}, false)
	compare("target_limit", base, map[string]any{"target_limit": 1, "static_configs": []any{map[string]any{"targets": []string{at.Listener.Addr().String()}, "labels": map[string]string{"instance": "a"}}}}, false)
	if !t.Failed() && (stale < 1000 || series < 3000) {
		t.Errorf("only %d series and %d stale markers are compared", series, stale)
	}
}

// TestCutOffProtobuf shows the one difference in what is stored of a page that cannot be read: protobuf is checked as a whole
// before anything of it is read, so the report of the failed scrape has no samples, and the series that stand before the
// mistake end at once, as all others do.
func TestCutOffProtobuf(t *testing.T) {
	at := newTarget()
	defer at.Close()
	whole := nativePages(t, 946_684_700_000)[0].body
	good := answer{kind: protobuf, body: whole}
	at.show([]answer{good, {kind: protobuf, body: whole[:len(whole)/2]}, good})
	addr := strings.TrimPrefix(at.URL, "http://")
	var theirs, mine *recorder
	synctest.Test(t, func(t *testing.T) { theirs = byTheirs(t, entry(t, "/theirs", addr, nil), 3, false) })
	synctest.Test(t, func(t *testing.T) { mine = byOurs(t, entry(t, "/ours", addr, nil), 3, false) })
	want, got := theirs.byScrape(3), mine.byScrape(3)
	for series, all := range got {
		want := want[series]
		switch {
		case strings.Contains(series, "scrape_samples_") || series == "scrapes" || strings.Contains(series, "scrape_series"):
			if len(all) != len(want) || len(all) > 1 && !strings.HasPrefix(all[1], "scrape 1: 0, ") {
				t.Errorf("%s: %q, in Prometheus %q", series, all, want)
			}
		case strings.Contains(series, `"up"`) || strings.Contains(series, "duration"):
			if diff := cmp.Diff(want, all); diff != "" {
				t.Errorf("%s: %s", series, diff)
			}
		case len(all) != 3 || !strings.HasPrefix(all[1], "scrape 1: stale, "):
			t.Errorf("%s: %q", series, all)
		}
	}
}
