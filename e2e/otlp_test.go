package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"hwsagent/internal/tools/results"
)

// heard is everything that is known of samples: their values, and what else was said.
type heard struct {
	samples   contents
	said      map[string]string   // start, type, unit and help of a sample, by series and time
	exemplars map[string][]string // by series
}

func newHeard() *heard {
	return &heard{samples: contents{}, said: map[string]string{}, exemplars: map[string][]string{}}
}

func (h *heard) say(series string, t, st int64, kind, unit, help string) {
	h.said[fmt.Sprint(series, " @", t)] = fmt.Sprintf("from %d, %s in %q: %s", st, kind, unit, help)
}

func (h *heard) exemplar(series, ls labels.Labels, v float64, t int64) {
	key, text := series.String(), fmt.Sprint(ls, " ", v, " @", t)
	if !slices.Contains(h.exemplars[key], text) { // a TSDB takes each once
		h.exemplars[key] = append(h.exemplars[key], text)
		slices.Sort(h.exemplars[key])
	}
}

// leaveOut removes what differs, and returns how many samples that is.
func (h *heard) leaveOut() (n int) {
	has := func(series string) bool { return strings.Contains(series, `instance="`+differs+`"`) }
	for series, times := range h.samples {
		if has(series) {
			n += len(times)
		}
	}
	maps.DeleteFunc(h.samples, func(series string, _ map[int64][]string) bool { return has(series) })
	maps.DeleteFunc(h.said, func(key, _ string) bool { return has(key) })
	maps.DeleteFunc(h.exemplars, func(series string, _ []string) bool { return has(series) })
	return n
}

// listener is a target that takes remote write 2.0 and keeps everything.
type listener struct {
	t  *testing.T
	mu sync.Mutex
	*heard
}

// ServeHTTP implements [http.Handler].
func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		body, err = snappy.Decode(nil, body)
	}
	var q writev2.Request
	if err == nil {
		err = q.Unmarshal(body)
	}
	if err != nil {
		l.t.Error(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	lb := labels.NewScratchBuilder(8)
	n := 0
	for _, ts := range q.Timeseries {
		ls, err := ts.ToLabels(&lb, q.Symbols)
		if err != nil {
			l.t.Error(err)
			continue
		}
		meta, err := ts.ToMetadata(q.Symbols)
		if err != nil {
			l.t.Error(err)
		}
		name := ls.String()
		for _, s := range ts.Samples {
			l.samples.add(name, s.Timestamp, floatText(s.Value))
			l.say(name, s.Timestamp, s.StartTimestamp, string(meta.Type), meta.Unit, meta.Help)
		}
		for _, h := range ts.Histograms {
			kind, f := "int", (*histogram.FloatHistogram)(nil)
			if h.IsFloatHistogram() {
				kind, f = "float", h.ToFloatHistogram()
			} else {
				f = h.ToIntHistogram().ToFloat(nil)
			}
			l.samples.add(name, h.Timestamp, nativeText(kind, f))
			l.say(name, h.Timestamp, h.StartTimestamp, string(meta.Type), meta.Unit, meta.Help)
		}
		for _, e := range ts.Exemplars {
			one, err := e.ToExemplar(&lb, q.Symbols)
			if err != nil {
				l.t.Error(err)
			}
			l.exemplar(ls, one.Labels, one.Value, one.Ts)
		}
		n += len(ts.Samples) + len(ts.Histograms)
	}
	w.Header().Set("X-Prometheus-Remote-Write-Samples-Written", fmt.Sprint(n))
	w.Header().Set("X-Prometheus-Remote-Write-Histograms-Written", "0")
	w.Header().Set("X-Prometheus-Remote-Write-Exemplars-Written", "0")
	w.WriteHeader(http.StatusNoContent)
}

// hearPrometheus3 reads back what a prometheus3 has.
func hearPrometheus3(t *testing.T, end endpoint) *heard {
	t.Helper()
	h := newHeard()
	h.samples = end.read()
	base := strings.TrimSuffix(end.write, "/api/v1/write")
	var traced struct {
		Data []struct {
			Labels           labels.Labels
			T, ST            int64
			Type, Unit, Help string
		}
	}
	if err := json.Unmarshal(do(t, http.MethodGet, base+"/api/v1/appended", nil, nil), &traced); err != nil {
		t.Fatal(err)
	}
	for _, s := range traced.Data {
		h.say(s.Labels.String(), s.T, s.ST, s.Type, s.Unit, s.Help)
	}
	var found struct {
		Data []struct {
			SeriesLabels labels.Labels
			Exemplars    []struct {
				Labels    labels.Labels
				Value     json.RawMessage // a text, or a number
				Timestamp json.RawMessage
			}
		}
	}
	body := do(t, http.MethodGet, base+"/api/v1/query_exemplars", nil, nil)
	if err := json.Unmarshal(body, &found); err != nil {
		t.Fatal(err)
	}
	for _, s := range found.Data {
		for _, e := range s.Exemplars {
			h.exemplar(s.SeriesLabels, e.Labels, number(t, strings.Trim(string(e.Value), `"`)), int64(math.Round(number(t, string(e.Timestamp)))))
		}
	}
	return h
}

// TestOTLPAsPrometheus sends one corpus to Prometheus' own receiver of OTLP and to the
// agent's: the same series, values, times, start times, metadata and exemplars.
func TestOTLPAsPrometheus(t *testing.T) {
	endToEnd(t)
	for _, settings := range []string{
		"{}",
		"{promote_resource_attributes: [deployment.environment, größe, service.name], keep_identifying_resource_attributes: true, promote_scope_metadata: true}",
		"{translation_strategy: UnderscoreEscapingWithoutSuffixes, promote_all_resource_attributes: true, ignore_resource_attributes: [process.pid]}",
		"{translation_strategy: NoUTF8EscapingWithSuffixes, convert_histograms_to_nhcb: true, promote_scope_metadata: true}",
		"{label_name_underscore_sanitization: false, label_name_preserve_multiple_underscores: false}",
		"{translation_strategy: NoTranslation, promote_all_resource_attributes: true}",
	} {
		t.Run(settings, func(t *testing.T) {
			t.Parallel()
			otlpAsPrometheus(t, settings)
		})
	}
}

func otlpAsPrometheus(t *testing.T, settings string) {
	theirs := startPrometheus3With(t, backend{window: 2 * time.Hour}, "-otlp", settings)
	ours := &listener{t: t, heard: newHeard()}
	target := httptest.NewServer(ours)
	defer target.Close()
	listen := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	own := strings.TrimPrefix(strings.TrimSuffix(settings, "}"), "{")
	if own != "" {
		own = ", " + own
	}
	a := startAgent(t, fmt.Sprintf(`
probes:
  - {name: hwsagent, type: self, enabled: false}
receivers:
  otlp: {http: {listen: %q}%s}
remote_write:
`, listen, own)+entry("target", target.URL, "    protobuf_message: "+message2+"\n    send_native_histograms: true\n    send_exemplars: true\n"))

	clock := otlpClock{zero: time.Now().Add(-10 * time.Minute).Truncate(time.Second)}
	corpus := otlpCorpus(clock)
	for _, q := range corpus {
		body := q.proto(t)
		got, text := send(t, http.MethodPost, strings.TrimSuffix(theirs.write, "write")+"otlp/v1/metrics", "application/x-protobuf", "", body)
		mine, why := send(t, http.MethodPost, "http://"+listen+"/v1/metrics", "application/x-protobuf", "", body)
		if got/100 != 2 && !q.differs() && q.name != "another value for the same moment" || mine != http.StatusOK {
			t.Errorf("%s: Prometheus %d %s, agent %d %q", q.name, got, text, mine, why)
		}
	}
	a.drained(time.Minute, "target")
	want := hearPrometheus3(t, theirs)
	ours.mu.Lock()
	defer ours.mu.Unlock()
	if theirs, ours := want.leaveOut(), ours.leaveOut(); theirs >= ours || theirs == 0 {
		t.Errorf("of what differs Prometheus has %d samples and the agent %d: is it still different?", theirs, ours)
	}
	if want.samples.samples() < 130 || len(want.exemplars) < 5 {
		t.Errorf("only %d samples and exemplars of %d series are compared", want.samples.samples(), len(want.exemplars))
	}
	for what, diff := range map[string]string{
		"samples": cmp.Diff(want.samples, ours.samples), "start times and metadata": cmp.Diff(want.said, ours.said),
		"exemplars": cmp.Diff(want.exemplars, ours.exemplars),
	} {
		if diff != "" {
			t.Errorf("%s: Prometheus' (-) and the agent's (+):\n%s", what, diff)
		}
	}
	results.Add(t, results.Line{
		What: "OTLP as Prometheus: " + settings, Count: len(corpus), Lost: len(want.samples.lacks(ours.samples)),
		Figures: map[string]float64{"samples": float64(want.samples.samples())},
	})
}
