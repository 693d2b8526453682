package promtext

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"hwsagent/receivers"
	"hwsagent/receivers/receivertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func send(h http.Handler, query, contentType, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, Path+query, strings.NewReader(body))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const text = `# HELP jobs_total Jobs.
# TYPE jobs_total counter
jobs_total{queue="a"} 1
jobs_total{queue="b"} 2 1700000000000
# TYPE size histogram
size_bucket{le="+Inf"} 3
other 4
`

func TestText(t *testing.T) {
	l := &receivertest.Log{}
	h := New(l.Gate("import", receivers.DefaultLimits()))
	if w := send(h, "?timestamp=5&extra_label=dc=x&extra_label=queue=z", "application/x-www-form-urlencoded", text); w.Code != 204 { // what curl -d says
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w := send(h, "", "application/openmetrics-text", "# TYPE c counter\nc_total 7 6.5 # {trace=\"t\"} 1\n# EOF\n"); w.Code != 204 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	want := []receivertest.Sample{
		{Labels: `{__name__="jobs_total", dc="x", queue="z"}`, Family: "jobs_total", Type: "counter", Help: "Jobs.", T: 5, V: 1},
		{Labels: `{__name__="jobs_total", dc="x", queue="z"}`, Family: "jobs_total", Type: "counter", Help: "Jobs.", T: 1700000000000, V: 2},
		{Labels: `{__name__="size_bucket", dc="x", le="+Inf", queue="z"}`, Family: "size", Type: "histogram", T: 5, V: 3},
		{Labels: `{__name__="other", dc="x", queue="z"}`, T: 5, V: 4},
		{Labels: `{__name__="c_total"}`, Family: "c", Type: "counter", T: 6500, V: 7, Exemplars: 1},
	}
	if diff := cmp.Diff(want, l.Samples()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRelabelling(t *testing.T) {
	l := &receivertest.Log{}
	rules := receivertest.Rules(t, `[{source_labels: [__name__], regex: "size_.*|other", action: drop}, {source_labels: [queue], target_label: site, replacement: "lab-$1"}]`)
	if w := send(New(l.Gate("import", receivers.DefaultLimits(), rules...)), "?timestamp=5", "", text); w.Code != 204 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	want := []receivertest.Sample{
		{Labels: `{__name__="jobs_total", queue="a", site="lab-a"}`, Family: "jobs_total", Type: "counter", Help: "Jobs.", T: 5, V: 1},
		{Labels: `{__name__="jobs_total", queue="b", site="lab-b"}`, Family: "jobs_total", Type: "counter", Help: "Jobs.", T: 1700000000000, V: 2},
	}
	if diff := cmp.Diff(want, l.Samples()); diff != "" || l.Filtered() != 2 {
		t.Errorf("%d filtered; -want +got:\n%s", l.Filtered(), diff)
	}
}

func TestRefusals(t *testing.T) {
	manyLabels := "x{" + strings.Repeat(`a="b",`, 100_000) + "} 1\n"
	for _, tc := range []struct {
		query, body string
		reason      receivers.Reason
	}{
		{"", "good 1\nbad{ 2\n", receivers.Malformed},
		{"", "good 1\nbad x\n", receivers.Malformed},
		{"", "good 1\n\x00lost 2\n", receivers.Malformed}, // where the parser would end, with what came before
		{"?timestamp=now", "good 1\n", receivers.BadRequest},
		{"?extra_label=x", "good 1\n", receivers.BadRequest},
		{"", "x{a=\"" + strings.Repeat("v", 2<<20) + "\"} 1\n", receivers.TooComplex},
		{"", manyLabels, receivers.TooManyLabels},
		{"", strings.Repeat("x 1\n", 60_000), receivers.TooManySeries},
	} {
		l := &receivertest.Log{}
		g := l.Gate("import", receivers.DefaultLimits())
		if w := send(New(g), tc.query, "", tc.body); w.Code/100 != 4 || g.Counts().RefusedRequests[tc.reason] != 1 || len(l.Samples()) != 0 {
			t.Errorf("%s %.30q: %d %s; counted %v", tc.query, tc.body, w.Code, w.Body, g.Counts().RefusedRequests)
		}
	}
}

// A series beyond a limit for labels is refused alone, and named.
func TestSeriesBeyondALimitForLabels(t *testing.T) {
	for reason, bad := range map[receivers.Reason]string{
		receivers.TooManyLabels: "bad{" + func() (s string) {
			for i := range 70 {
				s += fmt.Sprintf("a%d=\"b\",", i)
			}
			return s
		}() + "} 1\n",
		receivers.LabelTooLong: `bad{a="` + strings.Repeat("v", 5000) + "\"} 1\nbad{" + strings.Repeat("n", 600) + "=\"v\"} 1\n",
	} {
		l := &receivertest.Log{}
		g := l.Gate("import", receivers.DefaultLimits())
		w := send(New(g), "", "", "good 1\n"+bad+"also 2\n")
		if n := uint64(strings.Count(bad, "\n")); w.Code != 400 || g.Counts().RefusedSamples[reason] != n || len(l.Samples()) != 2 || !strings.Contains(w.Body.String(), `{__name__="bad"} (`+string(reason)+")") {
			t.Errorf("%s: %d %s; counted %v, %d are stored", reason, w.Code, w.Body, g.Counts().RefusedSamples, len(l.Samples()))
		}
	}
}

// A text whose samples have times, of their own or of the request, is stored once, however often it comes. One without
// has new samples each time.
func TestRepeatedText(t *testing.T) {
	for body, tc := range map[string]struct {
		query  string
		stored int
	}{
		"a 1 1700000000000\na 2 1700000001000\n": {"", 2},
		"a 1 1700000000000\na 2\n":               {"", 4},
		"a 1\n":                                  {"", 2},
		"b 1\n":                                  {"?timestamp=1700000000000", 1},
	} {
		l := &receivertest.Log{}
		g := l.Gate("import", receivers.DefaultLimits())
		h := New(g)
		for range 2 {
			if w := send(h, tc.query, "", body); w.Code != 204 {
				t.Errorf("%q: %d %s", body, w.Code, w.Body)
			}
		}
		if n := len(l.Samples()); n != tc.stored {
			t.Errorf("%q: %d samples are stored, want %d", body, n, tc.stored)
		}
	}
}

// Windows line ends are read as VictoriaMetrics reads them, and blanks before a line are not part of a name.
func TestLinesOfOtherPrograms(t *testing.T) {
	for contentType, end := range map[string]string{"": "", "application/openmetrics-text": "# EOF\r\n"} {
		l := &receivertest.Log{}
		if w := send(New(l.Gate("import", receivers.DefaultLimits())), "?timestamp=5", contentType, "# HELP crlf Text.\r\n# TYPE crlf gauge\r\ncrlf{a=\"b\"} 1\r\n"+end); w.Code != 204 {
			t.Errorf("%q: %d %s", contentType, w.Code, w.Body)
		}
		want := []receivertest.Sample{{Labels: `{__name__="crlf", a="b"}`, Family: "crlf", Type: "gauge", Help: "Text.", T: 5, V: 1}}
		if diff := cmp.Diff(want, l.Samples()); diff != "" {
			t.Errorf("%q: -want +got:\n%s", contentType, diff)
		}
	}
	l := &receivertest.Log{}
	if w := send(New(l.Gate("import", receivers.DefaultLimits())), "?timestamp=5", "", "  lead 1\n\ttab{a=\"b\"} 2\n"); w.Code != 204 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	want := []receivertest.Sample{{Labels: `{__name__="lead"}`, T: 5, V: 1}, {Labels: `{__name__="tab", a="b"}`, T: 5, V: 2}}
	if diff := cmp.Diff(want, l.Samples()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// FuzzImport: whatever comes, it is stored or refused as a whole, or its single samples are.
func FuzzImport(f *testing.F) {
	f.Add(false, "timestamp=5&extra_label=dc=x", text)
	f.Add(true, "", "# TYPE c counter\nc_total 7 6.5 # {trace=\"t\"} 1\n# EOF\n")
	f.Fuzz(func(t *testing.T, open bool, query, body string) {
		l := &receivertest.Log{}
		g := l.Gate("import", receivers.DefaultLimits())
		contentType := ""
		if open {
			contentType = "application/openmetrics-text"
		}
		r := httptest.NewRequest(http.MethodPost, Path, strings.NewReader(body))
		r.URL.RawQuery = query
		r.Header.Set("Content-Type", contentType)
		w := httptest.NewRecorder()
		New(g).ServeHTTP(w, r)
		if w.Code != 204 && g.Counts().RefusedRequests[receivers.InvalidSample] == 0 && len(l.Samples()) > 0 {
			t.Errorf("%d %s, and %d samples are stored", w.Code, w.Body, len(l.Samples()))
		}
		for _, s := range l.Samples() {
			if !utf8.ValidString(s.Labels) {
				t.Errorf("%q is stored", s.Labels)
			}
		}
	})
}

// A text that once made the parser loop for ever ends, and as many at a time as there are places do not keep
// the next one out.
func TestEndlessTextIsRefused(t *testing.T) {
	l := &receivertest.Log{}
	g := l.Gate("import", receivers.DefaultLimits())
	h := New(g)
	answered := make(chan int)
	const body = "# TYPE a counter\na_total 1\na_total 2 # {a=7\n# EOF\n"
	places := receivers.DefaultLimits().Requests
	for range places {
		go func() { answered <- send(h, "", "application/openmetrics-text", body).Code }()
	}
	for range places {
		select {
		case code := <-answered:
			if code != http.StatusBadRequest {
				t.Errorf("status %d", code)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("a request never ends")
		}
	}
	if w := send(h, "", "", "good 1\n"); w.Code != http.StatusNoContent {
		t.Errorf("then %d %s", w.Code, w.Body)
	}
	if n := g.Counts().RefusedRequests[receivers.Malformed]; n != uint64(places) {
		t.Errorf("%d are counted", n)
	}
}

// The lines of OpenMetrics that end in _created are the start timestamps of the samples before them.
func TestCreatedLinesAreStartTimestamps(t *testing.T) {
	l := &receivertest.Log{}
	h := New(l.Gate("import", receivers.DefaultLimits()))
	const body = "# TYPE c counter\nc_total{x=\"1\"} 7 6.5\nc_created{x=\"1\"} 5.25\nc_total{x=\"2\"} 7 6.5\n# EOF\n"
	if w := send(h, "", "application/openmetrics-text; version=1.0.0", body); w.Code != 204 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	want := []receivertest.Sample{
		{Labels: `{__name__="c_total", x="1"}`, Family: "c", Type: "counter", ST: 5250, T: 6500, V: 7},
		{Labels: `{__name__="c_total", x="2"}`, Family: "c", Type: "counter", T: 6500, V: 7},
	}
	if diff := cmp.Diff(want, l.Samples()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// An exemplar that is longer than a TSDB of Prometheus takes is left out and counted; its sample is stored.
func TestLongExemplarsAreLeftOut(t *testing.T) {
	l := &receivertest.Log{}
	g := l.Gate("import", receivers.DefaultLimits())
	exemplar := func(n int) string { return " # {t=\"" + strings.Repeat("é", n-1) + "\"} 1\n" }
	body := "# TYPE c counter\nc_total{x=\"1\"} 7 6" + exemplar(128) + "c_total{x=\"2\"} 7 6" + exemplar(129) + "# EOF\n"
	if w := send(New(g), "", "application/openmetrics-text", body); w.Code != 204 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	want := []receivertest.Sample{
		{Labels: `{__name__="c_total", x="1"}`, Family: "c", Type: "counter", T: 6000, V: 7, Exemplars: 1},
		{Labels: `{__name__="c_total", x="2"}`, Family: "c", Type: "counter", T: 6000, V: 7},
	}
	if diff := cmp.Diff(want, l.Samples()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if n := g.Counts().RefusedSamples[receivers.ExemplarTooLong]; n != 1 {
		t.Errorf("%d are counted", n)
	}
}
