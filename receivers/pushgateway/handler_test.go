package pushgateway

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/push"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"go.uber.org/goleak"

	"hwsagent/internal/exposition"
	"hwsagent/receivers"
	"hwsagent/receivers/receivertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a receiver with its log and the directory of its groups.
type rig struct {
	*Receiver
	t   testing.TB
	dir string
	log *receivertest.Log
}

func newRig(t testing.TB, dir string, rules ...*relabel.Config) *rig {
	t.Helper()
	s, err := OpenStore(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l := &receivertest.Log{}
	return &rig{New(l.Gate("pushgateway", receivers.DefaultLimits(), rules...), s), t, dir, l}
}

func (r *rig) do(method, path, contentType, body string) *httptest.ResponseRecorder {
	q := httptest.NewRequest(method, path, strings.NewReader(body))
	if contentType != "" {
		q.Header.Set("Content-Type", contentType)
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, q)
	return w
}

// encoded sends text that is compressed.
func (r *rig) encoded(method, path, encoding string, body []byte) *httptest.ResponseRecorder {
	q := httptest.NewRequest(method, path, bytes.NewReader(body))
	q.Header.Set("Content-Encoding", encoding)
	w := httptest.NewRecorder()
	r.ServeHTTP(w, q)
	return w
}

func sorted(all []string) []string { return slices.Sorted(slices.Values(all)) }

func (r *rig) must(status int, method, path, body string) {
	r.t.Helper()
	if w := r.do(method, path, "", body); w.Code != status {
		r.t.Fatalf("%s %s: %d %s, want %d", method, path, w.Code, w.Body, status)
	}
}

// shows returns every series that a round would append, but for the times of pushes, which only
// are there or not.
func (r *rig) shows() (all []string) {
	r.t.Helper()
	err := r.Each(r.t.Context(), func(s *exposition.Sample) error {
		v := fmt.Sprint(s.V)
		if name := s.Labels.Get("__name__"); name == pushTime || name == failureTime {
			v = map[bool]string{true: "set", false: "0"}[s.V > 0]
		}
		if s.H != nil {
			v = s.H.String()
		}
		all = append(all, s.Labels.String()+" "+v)
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

func (r *rig) want(what string, want ...string) {
	r.t.Helper()
	if diff := cmp.Diff(want, r.shows()); diff != "" {
		r.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestGroups(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, dir)
	r.must(200, "PUT", "/metrics/job/backup", "# TYPE a counter\na{instance=\"x\",job=\"theirs\"} 1\nb 2\n")
	times := []string{`{__name__="push_failure_time_seconds", job="backup"} 0`, `{__name__="push_time_seconds", job="backup"} set`}
	all := func(more ...string) []string { return append(more, times...) }
	r.want("after PUT", all(`{__name__="a", instance="x", job="backup"} 1`, `{__name__="b", job="backup"} 2`)...)
	r.must(200, "POST", "/metrics/job/backup", "b 3\n")
	r.want("after POST", all(`{__name__="a", instance="x", job="backup"} 1`, `{__name__="b", job="backup"} 3`)...)
	r.must(200, "PUT", "/metrics/job/backup", "c 4\n")
	r.want("after PUT", all(`{__name__="c", job="backup"} 4`)...)

	r = newRig(t, dir) // after a restart
	r.want("after a restart", all(`{__name__="c", job="backup"} 4`)...)
	r.must(202, "DELETE", "/metrics/job/backup", "")
	r.want("after DELETE")
	stale := 0
	for _, s := range r.log.Samples() {
		if math.Float64bits(s.V) == value.StaleNaN {
			stale++
		}
	}
	if stale != 3 {
		t.Errorf("%d series are marked stale, want 3: %v", stale, r.log.Samples())
	}
	r.must(202, "DELETE", "/metrics/job/backup", "")
	newRig(t, dir).want("after DELETE and a restart")
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

// TestDeletedInTheMomentOfARound: a round and a DELETE at the same millisecond; the series
// are marked stale all the same, before the answer.
func TestDeletedInTheMomentOfARound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.TempDir())
		r.must(200, "PUT", "/metrics/job/backup", "a 1\n")
		app := r.log.AppenderV2(t.Context())
		err := r.Each(t.Context(), func(s *exposition.Sample) error {
			_, err := app.Append(0, s.Labels, 0, time.Now().UnixMilli(), s.V, nil, nil, storage.AOptions{})
			return err
		})
		if err = errors.Join(err, app.Commit()); err != nil {
			t.Fatal(err)
		}
		r.must(202, "DELETE", "/metrics/job/backup", "")
		var last []string
		newest := map[string]float64{}
		for _, s := range r.log.Samples() {
			newest[s.Labels] = s.V
		}
		for series, v := range newest {
			if !value.IsStaleNaN(v) {
				last = append(last, series)
			}
		}
		if len(newest) != 3 || len(last) > 0 {
			t.Errorf("of %d series these are not stale: %v", len(newest), last)
		}
	})
}

// A deletion ends the series under the names that relabelling gave them; a push that relabelling leaves without a name
// is refused. Each round relabels pushed series.
func TestRelabelling(t *testing.T) {
	r := newRig(t, t.TempDir(), receivertest.Rules(t, `
- {source_labels: [__name__], regex: noise|push_failure_time_seconds, action: drop}
- {source_labels: [job], target_label: site, replacement: "lab-$1"}
- {source_labels: [__name__], regex: nameless, target_label: __name__, replacement: ""}
`)...)
	r.must(200, "PUT", "/metrics/job/backup", "a 1\nnoise 2\n")
	r.must(400, "PUT", "/metrics/job/other", "a 1\nnameless 2\n")
	if r.log.Filtered() != 0 || len(r.log.Samples()) != 0 {
		t.Errorf("a push stores nothing by itself: %d filtered, stored %v", r.log.Filtered(), r.log.Samples())
	}
	r.must(202, "DELETE", "/metrics/job/backup", "")
	var got []string
	for _, s := range r.log.Samples() {
		if !value.IsStaleNaN(s.V) {
			t.Errorf("%s is not stale", s.Labels)
		}
		got = append(got, s.Labels)
	}
	want := []string{`{__name__="a", job="backup", site="lab-backup"}`, `{__name__="push_time_seconds", job="backup", site="lab-backup"}`}
	if diff := cmp.Diff(want, got); diff != "" || r.log.Filtered() != 2 {
		t.Errorf("%d filtered (-want +got):\n%s", r.log.Filtered(), diff)
	}
}

func TestPaths(t *testing.T) {
	b64 := base64.RawURLEncoding.EncodeToString
	for escaped, want := range map[string]map[string]string{
		"/metrics/job/a":                                          {"job": "a"},
		"/metrics/job/a/":                                         {"job": "a"},
		"/metrics/job/a%2Fb/c/path/d":                             {"job": "a", "b": "c", "path": "d"},
		"/metrics/job/a%2Fb/c%20d":                                {"job": "a", "b": "c d"},
		"/metrics/job/a/b/":                                       {"job": "a", "b": ""},
		"/metrics/job/a/b/c/":                                     nil,
		"/metrics/job/a//":                                        nil,
		"/metrics/job/a/path//var/tmp":                            nil, // not an empty path, and var is tmp
		"/metrics/job/a/U__foo_2e_bar/baz":                        {"job": "a", "foo.bar": "baz"},
		"/metrics/job/a/U__foo_2e_bar@base64/YmF6":                {"job": "a", "foo.bar": "baz"},
		"/metrics/job/a/U___55_____x/baz":                         {"job": "a", "U__x": "baz"},
		"/metrics/job/a/U__in_xxx_valid/baz":                      {"job": "a", "U__in_xxx_valid": "baz"},
		"/metrics/job/a/U______name____/baz":                      nil, // __name__
		"/metrics/U__job/a":                                       nil,
		"/metrics/job@base64/" + b64([]byte("a/b")):               {"job": "a/b"},
		"/metrics/job/a/path@base64/L3Zhci90bXA=":                 {"job": "a", "path": "/var/tmp"},
		"/metrics/job/a/instance@base64/=":                        {"job": "a", "instance": ""},
		"/metrics/job/titan/name@base64/zqDPgc6_zrzOt864zrXPjc-C": {"job": "titan", "name": "Προμηθεύς"},
		"/metrics/job":                                            nil,
		"/metrics/job/":                                           nil,
		"/metrics/job/a/b":                                        nil,
		"/metrics/instance/a":                                     nil,
		"/metrics/job/a/job/b":                                    nil,
		"/metrics/job/a/__name__/b":                               nil,
		"/metrics/job@base64/!!":                                  nil,
		"/metrics/job@base64/=":                                   nil,
		"/metrics/job/a/x/%ff":                                    nil,
		"/metrics/job" + strings.Repeat("/a/b", 40):               nil,
	} {
		u, err := url.Parse(escaped)
		if err != nil {
			t.Fatal(err)
		}
		got, err := groupOf(u.Path)
		if diff := cmp.Diff(want, got); diff != "" || (err == nil) != (want != nil) {
			t.Errorf("%s: %v %v", escaped, got, err)
		}
	}
}

// What client_golang pushes, classic and native histograms included, is what is shown.
func TestClientGolang(t *testing.T) {
	r := newRig(t, t.TempDir())
	srv := httptest.NewServer(r)
	defer srv.Close()
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "last_success", Help: "When."})
	g.Set(7)
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "size", NativeHistogramBucketFactor: 1.1})
	h.Observe(3)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, format := range []expfmt.Format{expfmt.NewFormat(expfmt.TypeProtoDelim), expfmt.NewFormat(expfmt.TypeTextPlain)} {
		p := push.New(srv.URL, "batch/x").Grouping("dc", "a").Collector(g).Format(format).Client(client)
		if strings.Contains(string(format), "protobuf") {
			p = p.Collector(h)
		}
		if err := p.Push(); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(r.shows(), "\n")
		if !strings.Contains(got, `{__name__="last_success", dc="a", job="batch/x"} 7`) || strings.Contains(got, "{count:1, sum:3, ") != strings.Contains(string(format), "protobuf") {
			t.Errorf("%s:\n%s", format, got)
		}
		if err := p.Delete(); err != nil {
			t.Fatal(err)
		}
		r.want("after deletion")
	}
}

func TestRefusals(t *testing.T) {
	r := newRig(t, t.TempDir())
	r.must(200, "PUT", "/metrics/job/a", "good 1\n")
	proto := "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
	var bomb bytes.Buffer // one family of a million empty metrics
	bomb.Write([]byte{0x80, 0x89, 0x7a})
	bomb.Write(bytes.Repeat([]byte{4<<3 | 2, 0}, 1_000_000))
	for name, tc := range map[string]struct {
		contentType, body string
		status            int
	}{
		"no exposition":     {"", "good{ 2", 400},
		"a timestamp":       {"", "good 2 1700000000000\n", 400},
		"a reserved name":   {"", "push_time_seconds 2\n", 400},
		"a label twice":     {"", "good{a=\"1\",a=\"2\"} 2\n", 400},
		"a long label":      {"", "good{a=\"" + strings.Repeat("x", 5000) + "\"} 2\n", 400},
		"too many samples":  {"", strings.Repeat("x 1\n", 500_000), 413},
		"cut protobuf":      {proto, "\x10abc", 400},
		"empty metrics":     {proto, bomb.String(), 413},
		"protobuf, another": {"application/vnd.google.protobuf; encoding=text", "", 415},
	} {
		if w := r.do("PUT", "/metrics/job/a", tc.contentType, tc.body); w.Code != tc.status {
			t.Errorf("%s: %d %.300s, want %d", name, w.Code, w.Body, tc.status)
		}
	}
	r.must(405, "GET", "/metrics/job/a", "")
	r.must(404, "PUT", "/metrics", "")
	// Refused pushes only changed the time of the last failure.
	r.want("after refusals", `{__name__="good", job="a"} 1`, `{__name__="push_failure_time_seconds", job="a"} set`, `{__name__="push_time_seconds", job="a"} set`)
}

// A damaged file costs its group only, and is left for a person.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, dir)
	r.must(200, "PUT", "/metrics/job/a", "x 1\n")
	r.must(200, "PUT", "/metrics/job/b", "x 1\n")
	file := r.store.file(key(map[string]string{"job": "a"}))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)-1] ^= 1
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "x"+fileEnd), text[:5], 0o600); err != nil {
		t.Fatal(err)
	}
	rest := file + newEnd // of a kill
	if err := os.WriteFile(rest, text[:5], 0o600); err != nil {
		t.Fatal(err)
	}
	newRig(t, dir).want("with damage", `{__name__="push_failure_time_seconds", job="b"} 0`, `{__name__="push_time_seconds", job="b"} set`, `{__name__="x", job="b"} 1`)
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(rest); err == nil {
		t.Error("what a kill left half-written stays for ever")
	}
}

// The parser of pushed text takes time with the square of the labels of a series: a line with many is
// refused before.
func TestManyLabelsAreRefusedAtOnce(t *testing.T) {
	r := newRig(t, t.TempDir())
	var b strings.Builder
	for i := range 80_000 {
		fmt.Fprintf(&b, "l%d=\"v\",", i)
	}
	began := time.Now()
	w := r.do("PUT", "/metrics/job/x", "", "x{"+b.String()+"} 1\n")
	if took := time.Since(began); w.Code != http.StatusBadRequest || took > 5*time.Second {
		t.Errorf("%d %s after %s", w.Code, w.Body, took)
	}
	r.want("after a refusal")
}
