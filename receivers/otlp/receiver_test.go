package otlp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/relabel"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/encoding/protowire"

	"hwsagent/receivers"
	"hwsagent/receivers/receivertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const start, now = 1_700_000_000_000, 1_700_000_060_000 // milliseconds

func at(ms int64) pcommon.Timestamp { return pcommon.NewTimestampFromTime(time.UnixMilli(ms)) }

// request returns a request with one resource; fill adds metrics.
func request(fill func(pmetric.MetricSlice)) pmetricotlp.ExportRequest {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "shop")
	rm.Resource().Attributes().PutStr("service.instance.id", "i1")
	rm.Resource().Attributes().PutStr("deployment.environment", "prod")
	fill(rm.ScopeMetrics().AppendEmpty().Metrics())
	return pmetricotlp.NewExportRequestFromMetrics(md)
}

func sum(ms pmetric.MetricSlice, kind pmetric.AggregationTemporality, from, to, v int64) {
	m := ms.AppendEmpty()
	m.SetName("requests")
	m.SetDescription("Requests.")
	s := m.SetEmptySum()
	s.SetIsMonotonic(true)
	s.SetAggregationTemporality(kind)
	p := s.DataPoints().AppendEmpty()
	p.SetIntValue(v)
	p.SetStartTimestamp(at(from))
	p.SetTimestamp(at(to))
	p.Attributes().PutStr("code", "200")
}

func exponential(ms pmetric.MetricSlice, from, to int64, scale int32, counts ...uint64) {
	m := ms.AppendEmpty()
	m.SetName("latency")
	m.SetUnit("s")
	e := m.SetEmptyExponentialHistogram()
	e.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	p := e.DataPoints().AppendEmpty()
	p.SetScale(scale)
	p.SetStartTimestamp(at(from))
	p.SetTimestamp(at(to))
	var n uint64
	for _, c := range counts {
		n += c
	}
	p.SetCount(n)
	p.SetSum(float64(n))
	p.Positive().BucketCounts().FromRaw(counts)
}

// rig is the receiver with both its handlers before a log.
type rig struct {
	log        *receivertest.Log
	gate       *receivers.Gate
	http, grpc http.Handler
}

func newRig(s Settings, rules ...*relabel.Config) *rig {
	l := &receivertest.Log{}
	g := l.Gate("otlp", receivers.DefaultLimits(), rules...)
	v := New(s, 100)
	return &rig{l, g, v.HTTP(g), v.GRPC(g)}
}

func (r *rig) post(contentType string, body []byte) *httptest.ResponseRecorder {
	q := httptest.NewRequest(http.MethodPost, Path, bytes.NewReader(body))
	q.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	r.http.ServeHTTP(w, q)
	return w
}

func (r *rig) call(path string, body []byte, head ...string) *httptest.ResponseRecorder {
	q := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
	q.ProtoMajor = 2
	q.Header.Set("Content-Type", "application/grpc")
	for i := 0; i < len(head); i += 2 {
		q.Header.Set(head[i], head[i+1])
	}
	w := httptest.NewRecorder()
	r.grpc.ServeHTTP(w, q)
	return w
}

func framed(flag byte, b []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{flag}, uint32(len(b))), b...)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// lines returns the samples in short.
func (r *rig) lines() (all []string) {
	for _, s := range r.log.Samples() {
		v := fmt.Sprint(s.V)
		if s.H != nil {
			v = s.H.String()
		}
		all = append(all, fmt.Sprintf("%s %s @%d+%d", s.Labels, v, s.ST, s.T-now))
	}
	return all
}

func TestEveryWayIn(t *testing.T) {
	req := request(func(ms pmetric.MetricSlice) { sum(ms, pmetric.AggregationTemporalityCumulative, start, now, 7) })
	proto, text := must(req.MarshalProto()), must(req.MarshalJSON())
	want := []string{
		fmt.Sprintf(`{__name__="requests_total", code="200", deployment_environment="prod", instance="i1", job="shop"} 7 @%d+0`, start),
		`{__name__="target_info", deployment_environment="prod", instance="i1", job="shop"} 1 @0+0`,
	}
	for name, send := range map[string]func(*rig) *httptest.ResponseRecorder{
		"protobuf": func(r *rig) *httptest.ResponseRecorder { return r.post("application/x-protobuf", proto) },
		"json":     func(r *rig) *httptest.ResponseRecorder { return r.post("application/json; charset=utf-8", text) },
		"grpc":     func(r *rig) *httptest.ResponseRecorder { return r.call(method, framed(0, proto)) },
		"grpc, compressed": func(r *rig) *httptest.ResponseRecorder {
			return r.call(method, framed(1, snappy.Encode(nil, proto)), "Grpc-Encoding", "snappy")
		},
	} {
		r := newRig(Settings{PromoteResourceAttributes: []string{"deployment.environment"}})
		w := send(r)
		if w.Code != 200 || strings.HasPrefix(name, "grpc") && w.Header().Get("Grpc-Status") != "0" {
			t.Errorf("%s: %d %v %s", name, w.Code, w.Header(), w.Body)
		}
		if diff := cmp.Diff(want, r.lines()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestRelabelling(t *testing.T) {
	rules := receivertest.Rules(t, `[{source_labels: [__name__], regex: target_info, action: drop}, {source_labels: [code], target_label: code, replacement: "c$1"}]`)
	req := request(func(ms pmetric.MetricSlice) { sum(ms, pmetric.AggregationTemporalityCumulative, start, now, 7) })
	want := []string{fmt.Sprintf(`{__name__="requests_total", code="c200", instance="i1", job="shop"} 7 @%d+0`, start)}
	for name, send := range map[string]func(*rig) *httptest.ResponseRecorder{
		"http": func(r *rig) *httptest.ResponseRecorder {
			return r.post("application/x-protobuf", must(req.MarshalProto()))
		},
		"grpc": func(r *rig) *httptest.ResponseRecorder { return r.call(method, framed(0, must(req.MarshalProto()))) },
	} {
		r := newRig(Settings{}, rules...)
		w := send(r)
		if diff := cmp.Diff(want, r.lines()); diff != "" || w.Code != 200 || r.log.Filtered() != 1 {
			t.Errorf("%s: %d %s; %d filtered (-want +got):\n%s", name, w.Code, w.Body, r.log.Filtered(), diff)
		}
	}
}

// Deltas come out as what they add up to; one that comes again is not counted twice, nor
// one whose commit failed.
func TestDeltas(t *testing.T) {
	r := newRig(Settings{})
	const step = 1000
	send := func(i, v int64, schema ...string) *httptest.ResponseRecorder {
		return r.post("application/x-protobuf", must(request(func(ms pmetric.MetricSlice) {
			for _, text := range schema {
				ms.AppendEmpty().SetEmptyGauge() // without a point: only the body differs
				ms.At(0).SetName(text)
			}
			sum(ms, pmetric.AggregationTemporalityDelta, now+(i-1)*step, now+i*step, v)
			exponential(ms, now+(i-1)*step, now+i*step, int32(2-i), 1, uint64(v))
		}).MarshalProto()))
	}
	if w := send(1, 5); w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	r.log.Fail(receivertest.ErrFull)
	if w := send(2, 7); w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("with a full log: %d", w.Code)
	}
	r.log.Fail(nil)
	for range 2 { // the request again, answered as before
		if w := send(2, 7); w.Code != 200 || w.Body.Len() > 0 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	if w := send(2, 7, "by another sender"); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	var got []string
	for _, l := range r.lines() {
		if !strings.Contains(l, "target_info") {
			got = append(got, l)
		}
	}
	want := []string{
		fmt.Sprintf(`{__name__="requests_total", code="200", instance="i1", job="shop"} 5 @%d+1000`, now),
		fmt.Sprintf(`{__name__="latency_seconds", instance="i1", job="shop"} {count:6, sum:6, (1,1.414213562373095]:1, (1.414213562373095,2]:5} @%d+1000`, now),
		fmt.Sprintf(`{__name__="requests_total", code="200", instance="i1", job="shop"} 12 @%d+2000`, now),
		fmt.Sprintf(`{__name__="latency_seconds", instance="i1", job="shop"} {count:14, sum:14, (1,2]:7, (2,4]:7} @%d+2000`, now),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if n := r.gate.Counts().RefusedSamples[receivers.OldDelta]; n != 2 {
		t.Errorf("%d deltas count as old, want 2", n)
	}
}

func TestPartialSuccess(t *testing.T) {
	r := newRig(Settings{})
	req := request(func(ms pmetric.MetricSlice) {
		sum(ms, pmetric.AggregationTemporalityUnspecified, start, now, 1)
		sum(ms, pmetric.AggregationTemporalityCumulative, start, now, 2)
	})
	w := r.post("application/json", must(req.MarshalJSON()))
	if w.Code != 200 || !strings.Contains(w.Body.String(), `"rejectedDataPoints":"1"`) || len(r.lines()) != 2 {
		t.Errorf("%d %s; stored %v", w.Code, w.Body, r.lines())
	}
	answer := pmetricotlp.NewExportResponse()
	w = r.post("application/x-protobuf", must(req.MarshalProto()))
	if err := answer.UnmarshalProto(w.Body.Bytes()); err != nil || answer.PartialSuccess().RejectedDataPoints() != 1 || answer.PartialSuccess().ErrorMessage() == "" {
		t.Errorf("%v %x", err, w.Body)
	}
}

// A metric that has no form in Prometheus, and a point that says no time, cost themselves: the
// rest of their request is stored, deltas are counted once.
func TestOneBadMetric(t *testing.T) {
	for _, kind := range []pmetric.AggregationTemporality{pmetric.AggregationTemporalityCumulative, pmetric.AggregationTemporalityDelta} {
		r := newRig(Settings{})
		req := request(func(ms pmetric.MetricSlice) {
			sum(ms, kind, start, now, 2)
			exponential(ms, start, now, -9, 1, 2) // coarser than Prometheus can
			g := ms.AppendEmpty()
			g.SetName("timeless")
			g.SetEmptyGauge().DataPoints().AppendEmpty().SetIntValue(1)
			ms.AppendEmpty().SetEmptyGauge().DataPoints().AppendEmpty().SetTimestamp(at(now)) // without a name
			e := ms.AppendEmpty()
			e.SetName("empty")
			e.SetEmptyGauge()
		})
		bad := req.Metrics().ResourceMetrics().AppendEmpty() // without metrics, but with an attribute that has no name
		bad.Resource().Attributes().PutStr("", "x")
		for round := range 2 {
			w := r.post("application/json", must(req.MarshalJSON()))
			want := 3 // points
			if round == 1 && kind == pmetric.AggregationTemporalityDelta {
				want++ // was counted before
			}
			if w.Code != 200 || !strings.Contains(w.Body.String(), fmt.Sprintf(`"rejectedDataPoints":"%d"`, want)) {
				t.Errorf("%s: %d %s, want %d rejected", kind, w.Code, w.Body, want)
			}
		}
		if got := r.lines(); len(got) == 0 || !strings.HasPrefix(got[0], `{__name__="requests_total"`) || !strings.Contains(got[0], " 2 @") {
			t.Errorf("%s: %v", kind, got)
		}
	}
}

// nested returns a value in values, so many deep.
func nested(depth int) []byte {
	value := []byte{}
	for range depth {
		list := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), value)
		value = protowire.AppendBytes(protowire.AppendTag(nil, 5, protowire.BytesType), list)
	}
	pair := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), value)
	for _, number := range []protowire.Number{1, 1, 1} { // attributes, resource, resource metrics
		pair = protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), pair)
	}
	return pair
}

func TestHostileRequests(t *testing.T) {
	points := protowire.AppendBytes(protowire.AppendTag(nil, 5, protowire.BytesType), bytes.Repeat([]byte{1<<3 | 2, 0}, 2<<20))
	for _, number := range []protowire.Number{2, 2, 1} { // metric, scope, resource
		points = protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), points)
	}
	described := must(request(func(ms pmetric.MetricSlice) { // one description of 60 KiB for 40,000 series
		m := ms.AppendEmpty()
		m.SetName("m")
		m.SetDescription(strings.Repeat("h", 60<<10))
		points := m.SetEmptyGauge().DataPoints()
		for i := range 40_000 {
			p := points.AppendEmpty()
			p.Attributes().PutInt("i", int64(i))
			p.SetTimestamp(now)
			p.SetIntValue(1)
		}
	}).MarshalProto())
	for _, tc := range []struct {
		name, contentType string
		body              []byte
		reason            receivers.Reason
	}{
		{"one description of 40,000 series", "application/x-protobuf", described, receivers.TooComplex},
		{"text", "text/plain", nil, receivers.Unsupported},
		{"not protobuf", "application/x-protobuf", []byte("hello"), receivers.Malformed},
		{"not json", "application/json", []byte("{\"resourceMetrics\":[{"), receivers.Malformed},
		{"empty points", "application/x-protobuf", points, receivers.TooComplex},
		{"nesting", "application/x-protobuf", nested(5000), receivers.TooComplex},
		{"nesting in json", "application/json", []byte(strings.Repeat(`{"a":[`, 100_000)), receivers.TooComplex},
		{"empty objects", "application/json", []byte(`{"resourceMetrics":[` + strings.Repeat("{},", 1<<20) + `{}]}`), receivers.TooComplex},
	} {
		r := newRig(Settings{})
		w := r.post(tc.contentType, tc.body)
		if w.Code/100 != 4 || r.gate.Counts().RefusedRequests[tc.reason] != 1 || len(r.lines()) != 0 {
			t.Errorf("%s: %d %.200s; counted %v, want %s", tc.name, w.Code, w.Body, r.gate.Counts().RefusedRequests, tc.reason)
		}
	}
	for _, tc := range []struct {
		name, path string
		body       []byte
		code       string
	}{
		{"another service", "/opentelemetry.proto.collector.trace.v1.TraceService/Export", framed(0, nil), "12"},
		{"no frame", method, []byte("abc"), "3"},
		{"two frames", method, append(framed(0, nil), framed(0, nil)...), "3"},
		{"a frame that is longer", method, framed(0, []byte("ab"))[:6], "3"},
		{"unknown compression", method, framed(1, []byte("ab")), "3"},
		{"empty points", method, framed(0, points), "8"},
	} {
		r := newRig(Settings{})
		if w := r.call(tc.path, tc.body); w.Code != 200 || w.Header().Get("Grpc-Status") != tc.code || w.Header().Get("Grpc-Message") == "" {
			t.Errorf("%s: %d %v, want %s", tc.name, w.Code, w.Header(), tc.code)
		}
	}
	r := newRig(Settings{})
	r.log.Fail(receivertest.ErrFull)
	ok := must(request(func(ms pmetric.MetricSlice) { sum(ms, pmetric.AggregationTemporalityCumulative, start, now, 1) }).MarshalProto())
	if w := r.call(method, framed(0, ok)); w.Header().Get("Grpc-Status") != "14" {
		t.Errorf("a full log: %v", w.Header())
	}
}

// FuzzRequest: whatever comes, it is stored or refused.
func FuzzRequest(f *testing.F) {
	req := request(func(ms pmetric.MetricSlice) {
		sum(ms, pmetric.AggregationTemporalityDelta, start, now, 7)
		exponential(ms, start, now, 1, 1, 2)
	})
	f.Add(byte(0), must(req.MarshalProto()))
	f.Add(byte(1), must(req.MarshalJSON()))
	f.Add(byte(2), framed(0, must(req.MarshalProto())))
	f.Add(byte(0), nested(9))
	f.Fuzz(func(t *testing.T, way byte, body []byte) {
		r := newRig(Settings{})
		var w *httptest.ResponseRecorder
		switch way % 3 {
		case 0:
			w = r.post("application/x-protobuf", body)
		case 1:
			w = r.post("application/json", body)
		default:
			w = r.call(method, body)
		}
		ok := w.Code == 200 && (way%3 != 2 || w.Header().Get("Grpc-Status") == "0")
		if !ok && len(r.log.Samples()) > 0 {
			t.Errorf("%d %v %s, and %v is stored", w.Code, w.Header(), w.Body, r.lines())
		}
	})
}
