package pull

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"go.uber.org/goleak"

	"hwsagent/agent/inputs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func sample(family string, kind model.MetricType, v float64, ls ...string) inputs.Sample {
	return inputs.Sample{Labels: labels.FromStrings(ls...), T: 1_790_000_000_500, V: v, Family: family, Meta: metadata.Metadata{Type: kind, Help: "Help of\n" + family + "."}}
}

// zoo has every kind, in no order.
func zoo() []inputs.Sample {
	return []inputs.Sample{
		sample("rt", "histogram", 3, "__name__", "rt_count", "job", "a"),
		sample("rt", "histogram", 3, "__name__", "rt_bucket", "le", "+Inf", "job", "a"),
		sample("rt", "histogram", 2, "__name__", "rt_bucket", "le", "10", "job", "a"),
		sample("rt", "histogram", 1, "__name__", "rt_bucket", "le", "2", "job", "a"),
		sample("rt", "histogram", 0.5, "__name__", "rt_sum", "job", "a"),
		sample("reads_total", "counter", 7, "__name__", "reads_total", "disk", "b"),
		sample("reads_total", "counter", 5, "__name__", "reads_total", "disk", "a\\\"\n"),
		sample("ifHCInOctets", "counter", 9, "__name__", "ifHCInOctets", "ifIndex", "1"),
		sample("up", "gauge", 1, "__name__", "up", "job", "a"),
		sample("", "", math.Inf(-1), "__name__", "said"),
		sample("gc", "summary", 0.1, "__name__", "gc", "quantile", "0.5"),
		sample("gc", "summary", 4, "__name__", "gc_count"),
		sample("gc", "summary", 0.4, "__name__", "gc_sum"),
		sample("reads", "gauge", 1, "__name__", "reads"), // another type under one OpenMetrics name
		sample("odd.name", "gauge", math.NaN(), "__name__", "odd.name", "lab.el", "é"),
		{Labels: labels.FromStrings("__name__", "native"), T: 1, H: &histogram.Histogram{Count: 1}},
	}
}

func server(t testing.TB, all []inputs.Sample) *Handler {
	t.Helper()
	return New(Options{
		Newest: func(to []inputs.Sample) []inputs.Sample { return append(to, all...) }, External: labels.FromStrings("site", "lab", "job", "not this"),
		Selector: func(s string) ([]*labels.Matcher, error) {
			name, value, ok := strings.Cut(s, "=")
			if !ok {
				return nil, errors.New("parse selector")
			}
			return []*labels.Matcher{labels.MustNewMatcher(labels.MatchRegexp, name, value)}, nil
		},
	})
}

func get(t testing.TB, h http.Handler, target string, header ...string) (int, http.Header, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	body := io.Reader(w.Body)
	if w.Header().Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(body)
		if err != nil {
			t.Fatal(err)
		}
		body = z
	}
	text, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, w.Header(), string(text)
}

const openMetrics = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"

// parsed is what Prometheus' own parser makes of an answer.
func parsed(t *testing.T, contentType, text string) map[string]string {
	t.Helper()
	p, err := textparse.New([]byte(text), contentType, nil, textparse.ParserOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for {
		e, err := p.Next()
		if errors.Is(err, io.EOF) {
			return got
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if e == textparse.EntrySeries || e == textparse.EntryHistogram {
			var at *int64
			var v any
			if e == textparse.EntrySeries {
				_, at, v = p.Series()
			} else if _, t, h, fh := p.Histogram(); h != nil {
				at, v = t, h
			} else {
				at, v = t, fh
			}
			var ls labels.Labels
			p.Labels(&ls)
			key := ls.String()
			if _, twice := got[key]; twice {
				t.Errorf("%s comes twice", key)
			}
			got[key] = fmt.Sprint(v)
			if at != nil {
				got[key] += fmt.Sprint(" @", *at)
			}
		}
	}
}

func TestMetricsText(t *testing.T) {
	code, header, text := get(t, server(t, zoo()), "/metrics", "Accept", "text/plain;version=0.0.4;escaping=allow-utf-8")
	if code != http.StatusOK || !strings.HasPrefix(header.Get("Content-Type"), "text/plain") {
		t.Fatalf("%d %v", code, header)
	}
	want := `# HELP gc Help of\ngc.
# TYPE gc summary
gc{job="not this",quantile="0.5",site="lab"} 0.1
gc_sum{job="not this",site="lab"} 0.4
gc_count{job="not this",site="lab"} 4
# HELP ifHCInOctets Help of\nifHCInOctets.
# TYPE ifHCInOctets counter
ifHCInOctets{ifIndex="1",job="not this",site="lab"} 9
# HELP "odd.name" Help of\nodd.name.
# TYPE "odd.name" gauge
{"odd.name",job="not this","lab.el"="é",site="lab"} NaN
# HELP reads_total Help of\nreads_total.
# TYPE reads_total counter
reads_total{disk="a\\\"\n",job="not this",site="lab"} 5
reads_total{disk="b",job="not this",site="lab"} 7
# HELP reads Help of\nreads.
# TYPE reads gauge
reads{job="not this",site="lab"} 1
# HELP rt Help of\nrt.
# TYPE rt histogram
rt_bucket{job="a",le="2",site="lab"} 1
rt_bucket{job="a",le="10",site="lab"} 2
rt_bucket{job="a",le="+Inf",site="lab"} 3
rt_sum{job="a",site="lab"} 0.5
rt_count{job="a",site="lab"} 3
# HELP said Help of\n.
# TYPE said untyped
said{job="not this",site="lab"} -Inf
# HELP up Help of\nup.
# TYPE up gauge
up{job="a",site="lab"} 1
`
	if d := cmp.Diff(want, text); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	other := expfmt.NewTextParser(model.UTF8Validation)
	if _, err := other.TextToMetricFamilies(strings.NewReader(text)); err != nil {
		t.Errorf("client_model's parser: %v", err)
	}
}

// Text and OpenMetrics, plain and gzip, say the same, and Prometheus' parser takes both.
func TestFormatsAgree(t *testing.T) {
	h := server(t, zoo())
	_, header, text := get(t, h, "/metrics", "Accept", "text/plain;version=0.0.4;escaping=allow-utf-8")
	want := parsed(t, header.Get("Content-Type"), text)
	if len(want) != len(zoo())-1 {
		t.Errorf("%d series, want all but the native histogram", len(want))
	}
	_, header, text = get(t, h, "/metrics", "Accept", openMetrics+";escaping=allow-utf-8", "Accept-Encoding", "gzip")
	if !strings.HasPrefix(header.Get("Content-Type"), "application/openmetrics-text") || header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("%v", header)
	}
	got := parsed(t, header.Get("Content-Type"), text)
	// le and quantile are written as numbers of OpenMetrics by the parser.
	if len(got) != len(want) {
		t.Errorf("OpenMetrics has %v\ntext has %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	for _, line := range []string{"# TYPE reads counter", "# TYPE reads_total unknown", "# TYPE ifHCInOctets unknown", "# TYPE rt histogram", "# EOF"} {
		if strings.Contains(text, line+"\n") == (line == "# TYPE reads_total unknown") {
			t.Errorf("wrong about %q:\n%s", line, text)
		}
	}
	_, _, text = get(t, h, "/metrics") // one who knows no UTF-8 names
	if !strings.Contains(text, "odd_name{job=\"not this\",lab_el=") {
		t.Errorf("names are not escaped:\n%s", text)
	}
}

// A client that asks for protobuf gets every series that one of text does, and native histograms.
func TestProtobuf(t *testing.T) {
	h, fh := tsdbutil.GenerateTestHistogram(1), tsdbutil.GenerateTestGaugeFloatHistogram(2)
	all := append(zoo()[:len(zoo())-1], // its last is a histogram that does not add up
		inputs.Sample{Labels: labels.FromStrings("__name__", "whole", "l", "1"), T: 1_790_000_000_500, H: h, Meta: metadata.Metadata{Type: "histogram", Help: "Of \xff."}},
		inputs.Sample{Labels: labels.FromStrings("__name__", "whole", "l", "none"), T: 1_790_000_000_500, H: &histogram.Histogram{Schema: 3}},
		inputs.Sample{Labels: labels.FromStrings("__name__", "floats", "nul", "a\x00b"), T: 1_790_000_000_500, FH: fh},
		inputs.Sample{Labels: labels.FromStrings("__name__", "custom"), T: 1_790_000_000_500, H: tsdbutil.GenerateTestCustomBucketsHistogram(1)},
	)
	handler := server(t, all)
	var unshown atomic.Int64
	handler.o.Unshown = &unshown
	_, header, text := get(t, handler, "/metrics", "Accept", "text/plain;version=0.0.4;escaping=allow-utf-8")
	want := map[string]string{}
	for series, v := range parsed(t, header.Get("Content-Type"), text) {
		want[strings.ReplaceAll(series, `.0", site`, `", site`)] = v // the parser of text writes the bound 2 as 2.0
	}
	if n := unshown.Load(); n != 4 {
		t.Errorf("%d series are not shown in text, want 4", n)
	}
	const accept = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;escaping=allow-utf-8;q=0.9,text/plain;q=0.1"
	_, header, body := get(t, handler, "/metrics", "Accept", accept)
	for name, v := range map[string]string{
		`whole", job="not this", l="1`: h.String(), `whole", job="not this", l="none`: (&histogram.Histogram{Schema: 3}).String(), `floats", job="not this", nul="a\x00b`: fh.String(),
	} {
		want[`{__name__="`+name+`", site="lab"}`] = v
	}
	if d := cmp.Diff(want, parsed(t, header.Get("Content-Type"), body)); d != "" {
		t.Errorf("%s (-want +got):\n%s", header.Get("Content-Type"), d)
	}
	if n := unshown.Load(); n != 1 {
		t.Errorf("%d series are not shown in protobuf, want 1", n)
	}
	_, header, body = get(t, handler, "/federate?match[]=__name__=up|floats", "Accept", accept)
	got := parsed(t, header.Get("Content-Type"), body)
	if got[`{__name__="up", job="a", site="lab"}`] != "1 @1790000000500" || len(got) != 2 {
		t.Errorf("%v", got)
	}
}

func TestFederate(t *testing.T) {
	h := server(t, zoo())
	code, header, text := get(t, h, "/federate?match[]=__name__=up&match[]=disk=b")
	got := parsed(t, header.Get("Content-Type"), text)
	want := map[string]string{`{__name__="up", job="a", site="lab"}`: "1 @1790000000500", `{__name__="reads_total", disk="b", job="not this", site="lab"}`: "7 @1790000000500"}
	if d := cmp.Diff(want, got); code != http.StatusOK || d != "" {
		t.Errorf("%d (-want +got):\n%s", code, d)
	}
	_, header, text = get(t, h, "/federate?match[]=__name__=up", "Accept", openMetrics)
	if got := parsed(t, header.Get("Content-Type"), text); got[`{__name__="up", job="a", site="lab"}`] != "1 @1790000000500" {
		t.Errorf("%v", got)
	}
	for target, want := range map[string]int{
		"/federate": 400, "/federate?match[]=x": 400, "/federate?match[]=a=" + strings.Repeat("x", maxQuery): 400,
		"/federate?" + strings.Repeat("match[]=a=b&", maxSelector+1): 400, "/nothing": 404, "/": 200,
	} {
		if code, _, text := get(t, h, target); code != want {
			t.Errorf("%.40s: %d %s", target, code, text)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/metrics", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

// Labels whose names would be written the same stay distinct: a repeated name costs a scraper the
// whole answer.
func TestNamesThatCollide(t *testing.T) {
	all := []inputs.Sample{sample("x", "gauge", 1, "__name__", "x", "a-b", "1", "a.b", "2", "a_b", "3", "c.d", "4"), sample("y", "gauge", 1, "__name__", "y")}
	for _, accept := range []string{"text/plain", openMetrics} {
		_, header, text := get(t, server(t, all), "/metrics", "Accept", accept)
		want := `x{U__a_2d_b="1",U__a_2e_b="2",a_b="3",c_d="4",job="not this",site="lab"} 1` + "\n"
		if !strings.Contains(text, want) || len(parsed(t, header.Get("Content-Type"), text)) != 2 {
			t.Errorf("%s:\n%s", accept, text)
		}
	}
	_, header, text := get(t, server(t, all), "/metrics", "Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;escaping=underscores")
	if got := parsed(t, header.Get("Content-Type"), text); got[`{U__a_2d_b="1", U__a_2e_b="2", __name__="x", a_b="3", c_d="4", job="not this", site="lab"}`] == "" {
		t.Errorf("protobuf: %v", got)
	}
}

// Answers are bounded in number: each holds a snapshot.
func TestAtOnce(t *testing.T) {
	synctest.Test(t, testAtOnce) // who is one too many waits for a while
}

func testAtOnce(t *testing.T) {
	release, begun := make(chan struct{}), make(chan struct{}, maxAtOnce)
	h := New(Options{Newest: func(all []inputs.Sample) []inputs.Sample {
		begun <- struct{}{}
		<-release
		return all
	}})
	ended := make(chan int)
	for range maxAtOnce {
		go func() {
			code, _, _ := get(t, h, "/metrics")
			ended <- code
		}()
		<-begun
	}
	if code, header, _ := get(t, h, "/metrics"); code != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
		t.Errorf("one too many: %d", code)
	}
	close(release)
	for range maxAtOnce {
		if code := <-ended; code != http.StatusOK {
			t.Errorf("%d", code)
		}
	}
}

// A request that announces a body is answered without it, and takes no place: the server would
// wait for the body while the answer is written, and four such clients would keep everybody out.
func TestBodyIsNotWaitedFor(t *testing.T) {
	h := New(Options{Newest: func(all []inputs.Sample) []inputs.Sample { return all }})
	s := httptest.NewServer(h)
	defer s.Close()
	for range maxAtOnce + 1 {
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
		answer := make([]byte, len("HTTP/1.1 400 "))
		if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "HTTP/1.1 400 " {
			t.Fatalf("%v; %s", err, answer)
		}
	}
	if code, _, _ := get(t, h, "/metrics"); code != http.StatusOK {
		t.Errorf("%d", code)
	}
}

// BenchmarkPull is what an answer with 50,000 series costs.
func BenchmarkPull(b *testing.B) {
	const n = 50_000
	p := inputs.NewPath(&sink{}, slog.New(slog.DiscardHandler))
	in := p.Input("probe", "bench", inputs.Settings{})
	app := in.AppenderV2(b.Context())
	for i := range n {
		_, _ = app.Append(0, labels.FromStrings("__name__", "node_cpu_seconds_total", "cpu", fmt.Sprint(i), "instance", "host-1", "job", "node", "mode", "idle"), 0, time.Now().UnixMilli(), float64(i)/7, nil, nil, counterOptions())
	}
	if err := app.Commit(); err != nil {
		b.Fatal(err)
	}
	h := New(Options{Newest: p.Newest})
	b.ReportAllocs()
	bytes := 0
	for b.Loop() {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		w := &discard{header: http.Header{}}
		h.ServeHTTP(w, r)
		bytes = w.n
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/series")
	b.ReportMetric(float64(bytes)/n, "B/series")
}
