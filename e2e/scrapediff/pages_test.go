package scrapediff

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// scripted is a target that shows page after page: the nth scrape of a job by a scraper
// gets the nth page, whenever it comes, so that two scrapers see the same.
type scripted struct {
	pages map[string][]page // by job

	mu    sync.Mutex
	asked map[string]int // by path, which is /scraper/job
}

// page is one answer.
type page struct {
	kind   string // Content-Type
	body   string
	status int // 0 is 200
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	job := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	s.mu.Lock()
	n := s.asked[r.URL.Path]
	s.asked[r.URL.Path]++
	s.mu.Unlock()
	p := s.pages[job][min(n, len(s.pages[job])-1)]
	w.Header().Set("Content-Type", p.kind)
	if p.status != 0 {
		w.WriteHeader(p.status)
	}
	fmt.Fprint(w, p.body)
}

// done reports whether a scraper has had all pages of every job, and the answer to the last.
func (s *scripted) done(scraper string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for job, pages := range s.pages {
		if s.asked["/"+scraper+"/"+job] <= len(pages)+1 {
			return false
		}
	}
	return true
}

// scripts returns what the jobs of the differential test show.
func scripts(t *testing.T, stamp int64) map[string][]page {
	text := func(bodies ...string) (all []page) {
		for _, b := range bodies {
			all = append(all, page{kind: plain, body: b})
		}
		return all
	}
	om := func(bodies ...string) (all []page) {
		for _, b := range bodies {
			all = append(all, page{kind: om1, body: b + "# EOF\n"})
		}
		return all
	}
	base := text(
		"# HELP a_total Of a.\n# TYPE a_total counter\na_total{x=\"1\"} 1\na_total{x=\"2\"} 2\ng NaN\ninf +Inf\n",
		"a_total{x=\"1\"} 2\ng -Inf\n",             // two series end
		"a_total{x=\"1\"} 3\na_total{x=\"2\"} 0\n", // one comes again, one ends
		"a_total{x=\"1\"} 3\na_total{x=\"1\"} 4\n", // twice in one scrape
		"a_total{x=\"1\" 5\n",                      // not a page: everything ends
		"a_total{x=\"1\"} 6\n{\"ü.name\",\"l.1\"=\"v\"} 7\n",
		"", // nothing
		"a_total{x=\"1\"} 8\nup 3\njob_conflict{job=\"mine\",instance=\"its\",exported_job=\"e\"} 1\n",
		"a_total{x=\"\",y=\"1\"} 9\n",
		"# TYPE s summary\ns{quantile=\"0.5\"} 1\ns_sum 2\ns_count 3\n# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_sum 3\nh_count 2\n",
	)
	failing := append(append(base[:3:3], page{kind: plain, body: "a_total 1\n", status: 503}), base[0], page{kind: "text/html", body: "<p>login"}, base[1])
	at := func(ms int64) string { return fmt.Sprint(stamp + ms) }
	timed := text(
		"t "+"1 "+at(0)+"\nu 1\n", "t 1 "+at(0)+"\nu 2\n", "t 2 "+at(1000)+"\n", "t 3 "+at(1000)+"\nu 3\n", // same time, other value
		"t 4 "+at(500)+"\n",                                     // older
		"u 4\n", "t 5 "+at(2000)+"\n", "t 6 "+at(3600_000)+"\n", // ahead by an hour
		"u 5\n",
	)
	openText := om(
		"# TYPE c counter\n# HELP c Of c.\n# UNIT q_seconds seconds\n# TYPE q_seconds gauge\nq_seconds 1\nc_total{a=\"b\"} 1 # {trace_id=\"x\"} 0.5\nc_created{a=\"b\"} 1700000000.123\n",
		"# TYPE c counter\nc_total{a=\"b\"} 2 # {trace_id=\"x\"} 0.5\nc_created{a=\"b\"} 1700000000.123\n",
		"# TYPE c counter\nc_total{a=\"b\"} 3 # {trace_id=\"y\"} 0.7 "+fmt.Sprint(stamp/1000)+".5\n",
		"# TYPE c counter\nc_total{a=\"b\"} 3 # {trace_id=\"y\"} 0.7 "+fmt.Sprint(stamp/1000)+".5\n",
		"# TYPE c counter\nc_total{a=\"b\"} 4 # {trace_id=\"z\"} 0.1 "+fmt.Sprint(stamp/1000)+".1\n", // older than y
		"# TYPE c counter\nc_total{a=\"b\"} 5 # {trace_id=\""+strings.Repeat("w", 130)+"\"} 0.1\n",   // too long
		"# TYPE h histogram\nh_bucket{le=\"1.0\"} 1 # {id=\"p\"} 0.9\nh_bucket{le=\"+Inf\"} 2 # {id=\"q\"} 9\nh_count 2\nh_sum 3\n",
		"# TYPE i info\ni_info{v=\"1\"} 1\n# TYPE st stateset\nst{st=\"a\"} 1\nst{st=\"b\"} 0\n",
	)
	return map[string][]page{
		"text": base, "failing": failing, "honor": base, "timed": timed, "untimed": timed, "tracked": timed,
		"limited": base, "relabelled": base, "labels": base, "om": openText,
		"native": nativePages(t, stamp), "classic": nativePages(t, stamp), "custom": base[9:],
		"odd": oddPages(t, stamp),
	}
}

// nativePages returns a native histogram, a classic one, and a counter with start timestamps,
// as protobuf.
func nativePages(t testing.TB, stamp int64) (all []page) {
	reg := prometheus.NewRegistry()
	native := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "native_seconds", Help: "Native.", NativeHistogramBucketFactor: 1.1,
		Buckets: []float64{1, 2}, NativeHistogramMaxExemplars: 4}, []string{"l"})
	classic := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "classic_seconds", Buckets: []float64{1, 2}})
	count := prometheus.NewCounter(prometheus.CounterOpts{Name: "proto_total", Help: "Count."})
	reg.MustRegister(native, classic, count)
	for n := range 8 {
		for i := range 5 * (n + 1) {
			native.WithLabelValues("a").(prometheus.ExemplarObserver).ObserveWithExemplar(float64(i*i)/3, prometheus.Labels{"id": fmt.Sprint(n)})
			classic.Observe(float64(i))
		}
		count.(prometheus.ExemplarAdder).AddWithExemplar(2, prometheus.Labels{"id": fmt.Sprint(n)})
		if n == 4 {
			native.DeleteLabelValues("a") // ends, and begins anew
		} else if n > 5 {
			native.WithLabelValues("b").Observe(-3)
		}
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				all := m.GetHistogram().GetExemplars()
				for _, b := range m.GetHistogram().GetBucket() {
					all = append(all, b.GetExemplar())
				}
				for i, e := range append(all, m.GetCounter().GetExemplar()) {
					if e != nil { // all pages are made in one millisecond
						e.Timestamp = timestamppb.New(time.UnixMilli(stamp + int64(100*n+i)))
					}
				}
			}
		}
		var b bytes.Buffer
		enc := expfmt.NewEncoder(&b, expfmt.NewFormat(expfmt.TypeProtoDelim))
		for _, f := range families {
			if err := enc.Encode(f); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, page{kind: protobuf, body: b.String()})
	}
	return all
}

// oddPages are native histograms that client_golang does not make, as protobuf: of floats, of
// gauges, too fine, nearly too coarse, without buckets, of created times.
func oddPages(t testing.TB, stamp int64) (all []page) {
	u, f, i := func(v uint64) *uint64 { return &v }, func(v float64) *float64 { return &v }, func(v int32) *int32 { return &v }
	span := func(offset int32, length uint32) *dto.BucketSpan {
		return &dto.BucketSpan{Offset: &offset, Length: &length}
	}
	for n := range uint64(4) {
		began := timestamppb.New(time.UnixMilli(stamp - 1000))
		whole := func(scale int32) *dto.Histogram {
			return &dto.Histogram{
				SampleCount: u(5 + 5*n), SampleSum: f(7), Schema: i(scale), ZeroThreshold: f(0.01), ZeroCount: u(1 + n), CreatedTimestamp: began,
				PositiveSpan: []*dto.BucketSpan{span(0, 2), span(3, 1)}, PositiveDelta: []int64{int64(1 + n), 0, 0},
				NegativeSpan: []*dto.BucketSpan{span(-2, 1)}, NegativeDelta: []int64{int64(1 + n)},
			}
		}
		floats := &dto.Histogram{
			SampleCountFloat: f(2.5 + float64(n)), SampleSum: f(7), Schema: i(1), ZeroThreshold: f(0.01), ZeroCountFloat: f(0.5),
			PositiveSpan: []*dto.BucketSpan{span(0, 2)}, PositiveCount: []float64{1, 1 + float64(n)},
		}
		none := &dto.Histogram{SampleCount: u(0), SampleSum: f(0), Schema: i(3), ZeroThreshold: f(0.01), PositiveSpan: []*dto.BucketSpan{span(0, 0)}}
		var b bytes.Buffer
		enc := expfmt.NewEncoder(&b, expfmt.NewFormat(expfmt.TypeProtoDelim))
		for name, h := range map[string]*dto.Histogram{"fine": whole(8), "coarse": whole(-4), "gauged": whole(2), "floats": floats, "none": none} {
			kind, help, unit := dto.MetricType_HISTOGRAM, "Of "+name+".", "seconds"
			if name == "gauged" {
				kind = dto.MetricType_GAUGE_HISTOGRAM
			}
			if n == 2 && name == "fine" {
				help = "Said otherwise." // the metadata changes
			}
			name += "_seconds"
			if err := enc.Encode(&dto.MetricFamily{Name: &name, Help: &help, Unit: &unit, Type: &kind, Metric: []*dto.Metric{{Histogram: h}}}); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, page{kind: protobuf, body: b.String()})
	}
	return all
}

// scriptJobs returns the configuration of the jobs, for a scraper and the target's address.
func scriptJobs(scraper, addr string) string {
	job := func(name, more string) string {
		return fmt.Sprintf("  - job_name: %s\n    metrics_path: /%s/%s\n    static_configs: [{targets: [%q], labels: {rack: b4}}]\n%s", name, scraper, name, addr, more)
	}
	return "global: {scrape_interval: 500ms, scrape_timeout: 500ms, external_labels: {site: fra1}}\nscrape_configs:\n" +
		job("text", "") + job("failing", "") + job("honor", "    honor_labels: true\n") +
		job("timed", "") + job("untimed", "    honor_timestamps: false\n") + job("tracked", "    track_timestamps_staleness: true\n") +
		job("limited", "    sample_limit: 2\n    extra_scrape_metrics: true\n") +
		job("labels", "    label_value_length_limit: 3\n    metric_name_validation_scheme: legacy\n") +
		job("relabelled", "    metric_relabel_configs:\n      - {source_labels: [__name__], regex: 'g|inf', action: drop}\n      - {source_labels: [x], target_label: x, replacement: same}\n") +
		job("om", "") + job("native", "    scrape_native_histograms: true\n") +
		job("classic", "    scrape_native_histograms: true\n    always_scrape_classic_histograms: true\n    native_histogram_bucket_limit: 10\n") +
		job("odd", "    scrape_native_histograms: true\n") +
		job("custom", "    convert_classic_histograms_to_nhcb: true\n")
}
