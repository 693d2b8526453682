package remotewrite

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/golang/snappy"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"

	"hwsagent/receivers"
	"hwsagent/receivers/receivertest"
)

const content2 = "application/x-protobuf;proto=io.prometheus.write.v2.Request"

func send(h http.Handler, contentType string, message []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, Path, bytes.NewReader(snappy.Encode(nil, message)))
	r.Header.Set("Content-Encoding", "snappy")
	r.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func pairs(kv ...string) (out []prompb.Label) {
	for i := 0; i < len(kv); i += 2 {
		out = append(out, prompb.Label{Name: kv[i], Value: kv[i+1]})
	}
	return out
}

func marshal(t testing.TB, m interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	b, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func request1(t testing.TB) []byte {
	h, fh := tsdbutil.GenerateTestHistogram(1), tsdbutil.GenerateTestFloatHistogram(1)
	return marshal(t, &prompb.WriteRequest{
		Timeseries: []prompb.TimeSeries{
			{Labels: pairs("__name__", "a_total", "job", "j"), Samples: []prompb.Sample{{Value: 1, Timestamp: 1}, {Value: 2, Timestamp: 2}}},
			{Labels: pairs("__name__", "a_total", "job", "j"), Exemplars: []prompb.Exemplar{{Labels: pairs("trace", "t"), Value: 1, Timestamp: 2}}},
			{Labels: pairs("__name__", "h", "job", "j"), Histograms: []prompb.Histogram{prompb.FromIntHistogram(3, h)}},
			{Labels: pairs("__name__", "f", "job", "j"), Histograms: []prompb.Histogram{prompb.FromFloatHistogram(4, fh)}},
		},
		Metadata: []prompb.MetricMetadata{{Type: prompb.MetricMetadata_COUNTER, MetricFamilyName: "a", Help: "As."}},
	})
}

func request2(t testing.TB) []byte {
	symbols := writev2.NewSymbolTable()
	refs := func(kv ...string) []uint32 { return symbols.SymbolizeLabels(labels.FromStrings(kv...), nil) }
	r := &writev2.Request{Timeseries: []writev2.TimeSeries{
		{
			LabelsRefs: refs("__name__", "a_total", "job", "j"),
			Samples:    []writev2.Sample{{Value: 1, Timestamp: 10, StartTimestamp: 5}},
			Exemplars:  []writev2.Exemplar{{LabelsRefs: refs("trace", "t"), Value: 1, Timestamp: 2}},
			Metadata:   writev2.Metadata{Type: writev2.Metadata_METRIC_TYPE_COUNTER, HelpRef: symbols.Symbolize("As.")},
		},
		{LabelsRefs: refs("__name__", "h", "job", "j"), Histograms: []writev2.Histogram{writev2.FromIntHistogram(0, 10, tsdbutil.GenerateTestHistogram(1))}},
		{LabelsRefs: refs("__name__", "nhcb"), Histograms: []writev2.Histogram{writev2.FromIntHistogram(0, 11, tsdbutil.GenerateTestCustomBucketsHistogram(1))}},
	}}
	r.Symbols = symbols.Symbols()
	return marshal(t, r)
}

func TestVersion1(t *testing.T) {
	l := &receivertest.Log{}
	h := New(l.Gate("remote_write", receivers.DefaultLimits()))
	for range 2 { // the metadata comes after the series, and goes with those of the second request
		if w := send(h, "application/x-protobuf", request1(t)); w.Code != 204 || w.Header().Get("X-Prometheus-Remote-Write-Samples-Written") != "" {
			t.Fatalf("%d %s %v", w.Code, w.Body, w.Header())
		}
	}
	got := l.Samples()
	if len(got) != 10 {
		t.Fatalf("%d are stored: %+v", len(got), got)
	}
	want := []receivertest.Sample{
		{Labels: `{__name__="a_total", job="j"}`, Family: "a", Type: "counter", Help: "As.", T: 1, V: 1},
		{Labels: `{__name__="a_total", job="j"}`, Family: "a", Type: "counter", Help: "As.", T: 2, V: 2},
		{Labels: `{__name__="a_total", job="j"}`, T: 2, Exemplars: 1},
		{Labels: `{__name__="h", job="j"}`, T: 3, H: tsdbutil.GenerateTestHistogram(1)},
		{Labels: `{__name__="f", job="j"}`, T: 4, FH: tsdbutil.GenerateTestFloatHistogram(1)},
	}
	if diff := cmp.Diff(want, got[5:]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestVersion2(t *testing.T) {
	l := &receivertest.Log{}
	h := New(l.Gate("remote_write", receivers.DefaultLimits()))
	w := send(h, content2, request2(t))
	head := func(what string) string { return w.Header().Get("X-Prometheus-Remote-Write-" + what + "-Written") }
	if w.Code != 204 || head("Samples") != "1" || head("Histograms") != "2" || head("Exemplars") != "1" {
		t.Fatalf("%d %s %v", w.Code, w.Body, w.Header())
	}
	want := []receivertest.Sample{
		{Labels: `{__name__="a_total", job="j"}`, Type: "counter", Help: "As.", ST: 5, T: 10, V: 1},
		{Labels: `{__name__="a_total", job="j"}`, T: 2, Exemplars: 1},
		{Labels: `{__name__="h", job="j"}`, Type: "unknown", T: 10, H: tsdbutil.GenerateTestHistogram(1)},
		{Labels: `{__name__="nhcb"}`, Type: "unknown", T: 11, H: tsdbutil.GenerateTestCustomBucketsHistogram(1)},
	}
	if diff := cmp.Diff(want, l.Samples(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	// Part of it is stored, and the answer says how much.
	w = send(h, content2, func() []byte {
		symbols := writev2.NewSymbolTable()
		r := &writev2.Request{Timeseries: []writev2.TimeSeries{
			{LabelsRefs: symbols.SymbolizeLabels(labels.FromStrings("__name__", "a_total", "job", "j"), nil), Samples: []writev2.Sample{{Value: 7, Timestamp: 10}, {Value: 8, Timestamp: 11}}},
		}}
		r.Symbols = symbols.Symbols()
		return marshal(t, r)
	}())
	if w.Code != 400 || head("Samples") != "1" || !strings.Contains(w.Body.String(), "1 of 2 samples") {
		t.Errorf("%d %s %v", w.Code, w.Body, w.Header())
	}
	// Nothing is.
	l.Fail(receivertest.ErrFull)
	h = New(l.Gate("remote_write", receivers.DefaultLimits())) // that does not know the request
	if w = send(h, content2, request2(t)); w.Code != 503 || head("Samples") != "0" || head("Exemplars") != "0" {
		t.Errorf("%d %s %v", w.Code, w.Body, w.Header())
	}
}

// Messages that are small and stand for much are refused before they are expanded.
// Both versions, exemplars and stale markers are relabelled alike.
func TestRelabelling(t *testing.T) {
	rules := receivertest.Rules(t, `[{source_labels: [__name__], regex: "[hf]|nhcb", action: drop}, {source_labels: [job], target_label: site, replacement: "lab-$1"}]`)
	stale := marshal(t, &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{
		{Labels: pairs("__name__", "a_total", "job", "j"), Samples: []prompb.Sample{{Value: math.Float64frombits(value.StaleNaN), Timestamp: 20}}},
		{Labels: pairs("__name__", "h", "job", "j"), Samples: []prompb.Sample{{Value: math.Float64frombits(value.StaleNaN), Timestamp: 20}}},
	}})
	for _, tc := range []struct {
		content        string
		message        []byte
		kept, filtered int
	}{
		{"application/x-protobuf", request1(t), 3, 2},
		{content2, request2(t), 2, 2},
		{"application/x-protobuf", stale, 1, 1},
	} {
		l := &receivertest.Log{}
		w := send(New(l.Gate("remote_write", receivers.DefaultLimits(), rules...)), tc.content, tc.message)
		got := l.Samples()
		if w.Code != 204 || len(got) != tc.kept || l.Filtered() != tc.filtered {
			t.Errorf("%s: %d %s; %d filtered; stored %+v", tc.content, w.Code, w.Body, l.Filtered(), got)
		}
		for _, s := range got {
			if s.Labels != `{__name__="a_total", job="j", site="lab-j"}` {
				t.Errorf("%s: stored %+v", tc.content, s)
			}
		}
	}
}

func TestHostileMessages(t *testing.T) {
	deep := &prompb.WriteRequest{Timeseries: make([]prompb.TimeSeries, 100_000)}
	empties := bytes.Repeat([]byte{1<<3 | 2, 0}, 4<<20) // four million empty series
	samples := bytes.Repeat([]byte{2<<3 | 2, 0}, 1<<20)
	helped := &writev2.Request{Symbols: []string{"", "__name__", "x", "i", strings.Repeat("h", 60<<10)}} // one text of 60 KiB, named by each series
	for i := range 40_000 {
		helped.Symbols = append(helped.Symbols, fmt.Sprint(i))
		helped.Timeseries = append(helped.Timeseries, writev2.TimeSeries{
			LabelsRefs: []uint32{1, 2, 3, uint32(len(helped.Symbols) - 1)}, Samples: []writev2.Sample{{Value: 1, Timestamp: 1}},
			Metadata: writev2.Metadata{HelpRef: 4},
		})
	}
	for _, tc := range []struct {
		name, contentType string
		message           []byte
		reason            receivers.Reason
	}{
		{"not protobuf", "", []byte("hello, world"), receivers.Malformed},
		{"length beyond the end", "", []byte{1<<3 | 2, 0xff, 0xff, 0xff, 0xff, 0x0f}, receivers.Malformed},
		{"cut", "", request1(t)[:50], receivers.Malformed},
		{"100,000 series", "", marshal(t, deep), receivers.TooManySeries},
		{"empty series", "", empties, receivers.TooManySeries},
		{"one series of empty samples", "", append([]byte{1<<3 | 2, 0x80, 0x80, 0x80, 0x01}, samples...), receivers.TooComplex},
		{"reference to nothing", content2, marshal(t, &writev2.Request{Symbols: []string{"", "x"}, Timeseries: []writev2.TimeSeries{{LabelsRefs: []uint32{1, 9}}}}), receivers.Malformed},
		{"odd references", content2, marshal(t, &writev2.Request{Symbols: []string{"", "x"}, Timeseries: []writev2.TimeSeries{{LabelsRefs: []uint32{1}}}}), receivers.Malformed},
		{"one help named by 40,000 series", content2, marshal(t, helped), receivers.TooComplex},
		{"metadata of nothing", "", bytes.Repeat([]byte{3<<3 | 2, 0}, 4<<20), receivers.TooComplex},
		{"symbols of nothing", content2, bytes.Repeat([]byte{4<<3 | 2, 0}, 4<<20), ""},
		{"another message", "application/x-protobuf;proto=io.prometheus.write.v3.Request", nil, receivers.Unsupported},
		{"json", "application/json", []byte("{}"), receivers.Unsupported},
	} {
		l := &receivertest.Log{}
		g := l.Gate("remote_write", receivers.DefaultLimits())
		w := send(New(g), tc.contentType, tc.message)
		if tc.reason == "" {
			continue // it is enough that it is survived
		}
		if w.Code/100 != 4 || g.Counts().RefusedRequests[tc.reason] != 1 || len(l.Samples()) != 0 {
			t.Errorf("%s: %d %s, counted %v; want %s", tc.name, w.Code, w.Body, g.Counts().RefusedRequests, tc.reason)
		}
	}
}

// TestRepeatedRequest: a request that comes again is answered as before, and not logged again: its older samples would be late.
func TestRepeatedRequest(t *testing.T) {
	for content, message := range map[string][]byte{"application/x-protobuf": marshal(t, &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{
		{Labels: pairs("__name__", "re"), Samples: []prompb.Sample{{Value: 1, Timestamp: 1}, {Value: 2, Timestamp: 2}, {Value: 3, Timestamp: 3}}},
	}}), content2: request2(t)} {
		l := &receivertest.Log{}
		g := l.Gate("remote_write", receivers.DefaultLimits())
		h := New(g)
		first := send(h, content, message)
		stored := len(l.Samples())
		again := send(h, content, message)
		if diff := cmp.Diff(first.Header(), again.Header()); first.Code != 204 || again.Code != 204 || diff != "" || len(l.Samples()) != stored || stored < 3 || g.Counts().Repeated != 1 {
			t.Errorf("%s: %d, %d; %d samples, then %d; %+v; %s", content, first.Code, again.Code, stored, len(l.Samples()), g.Counts(), diff)
		}
	}
	// Metadata alone is recorded each time.
	l := &receivertest.Log{}
	g := l.Gate("remote_write", receivers.DefaultLimits())
	h := New(g)
	for range 2 {
		if w := send(h, "", marshal(t, &prompb.WriteRequest{Metadata: []prompb.MetricMetadata{{MetricFamilyName: "a"}}})); w.Code != 204 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	if n := g.Counts().Repeated; n != 0 {
		t.Errorf("%d requests with metadata count as repeated", n)
	}
}

// FuzzDecode: whatever comes, it is stored or refused, and never both.
func FuzzDecode(f *testing.F) {
	f.Add(false, request1(f))
	f.Add(true, request2(f))
	f.Add(true, []byte{4<<3 | 2, 0})
	limits := receivers.DefaultLimits()
	limits.MemoryBytes, limits.DecodedBytes = 16<<20, 4<<20
	f.Fuzz(func(t *testing.T, second bool, message []byte) {
		l := &receivertest.Log{}
		contentType := "application/x-protobuf"
		if second {
			contentType = content2
		}
		g := l.Gate("remote_write", limits)
		w := send(New(g), contentType, message)
		c := g.Counts()
		whole := w.Code != 204 && c.RefusedRequests[receivers.InvalidSample] == 0
		if whole && len(l.Samples()) > 0 {
			t.Errorf("%d %s, and %d samples are stored", w.Code, w.Body, len(l.Samples()))
		}
	})
}
