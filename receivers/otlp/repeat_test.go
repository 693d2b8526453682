package otlp

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/relabel"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"hwsagent/receivers"
	"hwsagent/receivers/receivertest"
)

// many returns a plain request with about n points in several resources and scopes, each of another series.
func many(n int, to int64) []byte {
	md := pmetric.NewMetrics()
	for i := range 3 {
		rm := md.ResourceMetrics().AppendEmpty()
		rm.SetSchemaUrl("https://schema")
		if i < 2 {
			rm.Resource().Attributes().PutStr("service.name", "shop")
			rm.Resource().Attributes().PutStr("service.instance.id", fmt.Sprint(i))
			rm.Resource().Attributes().PutEmptyMap("m").PutInt("k", 1)
		}
		for j := range 2 {
			sm := rm.ScopeMetrics().AppendEmpty()
			sm.Scope().SetName(fmt.Sprint("scope ", j))
			sm.SetSchemaUrl("https://scope")
			g, s := sm.Metrics().AppendEmpty(), sm.Metrics().AppendEmpty()
			g.SetName(fmt.Sprint("used.", j))
			g.SetUnit("By")
			g.SetDescription("Used.")
			g.Metadata().PutStr("prometheus.type", "gauge")
			fillPoints(g.SetEmptyGauge().DataPoints(), fmt.Sprint(i, j), n/12, to)
			s.SetName("requests")
			s.SetEmptySum().SetIsMonotonic(j == 0)
			s.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			fillPoints(s.Sum().DataPoints(), fmt.Sprint(i, j), n/12, to)
		}
	}
	return must((&pmetric.ProtoMarshaler{}).MarshalMetrics(md))
}

func fillPoints(ps pmetric.NumberDataPointSlice, who string, n int, to int64) {
	for k := range n {
		fillPoint(ps.AppendEmpty(), who, k, to)
	}
}

func fillPoint(p pmetric.NumberDataPoint, who string, k int, to int64) {
	p.SetTimestamp(at(to))
	p.Attributes().PutStr("who", who)
	p.Attributes().PutStr("device", fmt.Sprint("d", k))
	p.Attributes().PutInt("n", int64(k))
	switch k % 4 {
	case 0:
		p.SetIntValue(-int64(k))
		p.SetStartTimestamp(at(start))
	case 1:
		p.SetDoubleValue(math.Inf(1))
	case 2:
		p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	case 3:
		p.SetDoubleValue(0.5)
	}
}

// ascending encodes a message as most SDKs do, with its fields in ascending order; pdata writes them in descending order.
func ascending(message []byte, depth int) (out []byte) {
	type part struct {
		tag   byte
		bytes []byte
	}
	var parts []part
	for len(message) > 0 {
		tag, value, _, n := fieldOf(message)
		if n < 0 {
			return nil
		}
		bytes := message[:n]
		if tag&7 == 2 && depth > 0 {
			if inner := ascending(value, depth-1); len(inner) == len(value) {
				bytes = append([]byte{}, message[:n-len(value)]...)
				bytes = append(bytes, inner...)
			}
		}
		parts = append(parts, part{tag, bytes})
		message = message[n:]
	}
	slices.SortStableFunc(parts, func(a, b part) int { return int(a.tag) - int(b.tag) })
	for _, p := range parts {
		out = append(out, p.bytes...)
	}
	return out
}

// rawTotal is what the raw decoder sees of a request.
type rawTotal struct {
	keys      keys
	resources [][]byte
	heads     [][]byte
	points    []rawPoint
}

func (a *rawTotal) resource(bytes []byte) error {
	a.resources = append(a.resources, bytes)
	return nil
}

func (a *rawTotal) metric(m *rawMetric) error {
	a.heads = append(a.heads, bytes.Clone(a.keys.ofHead(&resource{}, m)))
	return m.each(func(p rawPoint) error {
		a.points = append(a.points, p)
		return nil
	})
}

func (*rawTotal) resourceEnds() error { return nil }

// FuzzRaw holds the raw decoder to pdata: a request that it accepts is valid for pdata if the parts that it does not look
// into are, and has the same points in the same order.
func FuzzRaw(f *testing.F) {
	seeds(f, func(body []byte) { f.Add(body) })
	f.Fuzz(func(t *testing.T, body []byte) {
		var raw rawTotal
		if walk(body, &raw) != nil {
			return
		}
		md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(body)
		if err != nil {
			return // a resource, a scope, an attribute
		}
		var points []rawPoint
		heads := 0
		for _, rm := range md.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					heads++
					if kind, _ := temporality(m); kind != pmetric.AggregationTemporalityCumulative {
						t.Errorf("its temporality is %v", kind)
					}
					ps := m.Gauge().DataPoints
					if m.Type() == pmetric.MetricTypeSum {
						ps = m.Sum().DataPoints
					}
					for _, p := range ps().All() {
						if p.Exemplars().Len() > 0 {
							t.Error("an exemplar")
						}
						one := rawPoint{st: p.StartTimestamp(), t: p.Timestamp(), none: p.Flags().NoRecordedValue()}
						if one.v = p.DoubleValue(); p.ValueType() == pmetric.NumberDataPointValueTypeInt {
							one.v = float64(p.IntValue())
						}
						points = append(points, one)
					}
				}
			}
		}
		same := len(points) == len(raw.points) && heads == len(raw.heads) && md.ResourceMetrics().Len() == len(raw.resources)
		for i := 0; same && i < len(points); i++ {
			a, b := points[i], raw.points[i]
			same = a.st == b.st && a.t == b.t && a.none == b.none && math.Float64bits(a.v) == math.Float64bits(b.v)
		}
		if !same {
			t.Errorf("%+v instead of %+v", raw.points, points)
		}
	})
}

// seeds passes requests to add, plain ones and such as are not.
func seeds(t testing.TB, add func([]byte)) {
	t.Helper()
	body := many(24, now)
	add(body)
	if up := ascending(body, 5); len(up) != len(body) || bytes.Equal(up, body) {
		t.Fatalf("%d bytes instead of %d", len(up), len(body))
	} else {
		add(up)
	}
	add(many(0, now))
	for _, spoil := range []func(ms pmetric.MetricSlice){
		func(ms pmetric.MetricSlice) { sum(ms, pmetric.AggregationTemporalityCumulative, start, now, 7) },
		func(ms pmetric.MetricSlice) { // one series, two values and three times
			for _, to := range []int64{now, now, now + 1, now - 1, now + 10*60_000} {
				sum(ms, pmetric.AggregationTemporalityCumulative, start, to, to%100)
			}
		},
		func(ms pmetric.MetricSlice) { // the labels of two points are equal, their bytes are not
			sum(ms, pmetric.AggregationTemporalityCumulative, start, now, 7)
			s := ms.At(0).Sum().DataPoints()
			s.At(0).Attributes().PutStr("a", "b")
			p := s.AppendEmpty()
			p.SetTimestamp(at(now + 1))
			p.Attributes().PutStr("a", "b")
			p.Attributes().PutStr("code", "200")
		},
		func(ms pmetric.MetricSlice) {
			sum(ms, pmetric.AggregationTemporalityDelta, start, now, 7)
			sum(ms, pmetric.AggregationTemporalityCumulative, start, now, 7)
		},
		func(ms pmetric.MetricSlice) {
			sum(ms, pmetric.AggregationTemporalityCumulative, start, now, 7)
			ms.At(0).Sum().DataPoints().At(0).Exemplars().AppendEmpty().SetIntValue(1)
		},
		func(ms pmetric.MetricSlice) {
			sum(ms, pmetric.AggregationTemporalityCumulative, start, now, 7)
			ms.At(0).SetName("")
		},
		func(ms pmetric.MetricSlice) { sum(ms, pmetric.AggregationTemporalityCumulative, start, 0, 7) },
		func(ms pmetric.MetricSlice) {
			sum(ms, pmetric.AggregationTemporalityCumulative, start, now, 7)
			ms.At(0).SetName("drop")
			sum(ms, pmetric.AggregationTemporalityCumulative, start, now, 7)
			ms.At(1).SetName("target.info")
			ms.At(1).SetEmptyGauge()
			fillPoint(ms.At(1).Gauge().DataPoints().AppendEmpty(), "a", 1, now)
		},
		func(ms pmetric.MetricSlice) { exponential(ms, start, now, 1, 1, 2) },
	} {
		add(must(request(spoil).MarshalProto()))
	}
}

// FuzzKnown: a receiver that knows the series answers and stores as one that does not.
func FuzzKnown(f *testing.F) {
	seeds(f, func(body []byte) { f.Add(body) })
	limits := receivers.DefaultLimits()
	limits.MemoryBytes, limits.DecodedBytes, limits.ActiveSeries = 16<<20, 4<<20, 20
	rules := receivertest.Rules(f, "[{source_labels: [__name__], regex: drop.*, action: drop}, {regex: code|device, action: labeldrop}]")
	f.Fuzz(func(t *testing.T, body []byte) {
		for i, rules := range [][]*relabel.Config{nil, nil, rules, rules} {
			for _, s := range []Settings{{}, {PromoteAllResourceAttributes: true, PromoteScopeMetadata: true, TranslationStrategy: "NoTranslation"}} {
				fresh, known := newRig(s, rules...), newRig(s, rules...)
				for _, r := range []*rig{fresh, known} {
					r.gate = r.log.Gate("otlp", limits, rules...)
				}
				v := New(s, 100)
				known.http, fresh.http = v.HTTP(known.gate), New(s, 100).HTTP(fresh.gate)
				known.log.Fail(receivertest.ErrFull) // so nothing is stored, but the series are learnt
				known.post(typeProtobuf, body)
				known.log.Fail(nil)
				known.log.Forget(i % 2)
				v.open = New(s, 100).open // a point without a value has ended some
				got, want := known.post(typeProtobuf, body), fresh.post(typeProtobuf, body)
				if got.Code != want.Code || got.Body.String() != want.Body.String() || cmp.Diff(got.Header(), want.Header()) != "" {
					t.Errorf("%d %q instead of %d %q", got.Code, got.Body, want.Code, want.Body)
				}
				if got, want := fmt.Sprintf("%+v", known.log.Samples()), fmt.Sprintf("%+v", fresh.log.Samples()); got != want {
					t.Errorf("%s instead of %s", got, want)
				}
				if got, want := known.gate.Counts().RefusedSamples, fresh.gate.Counts().RefusedSamples; !cmp.Equal(got, want) {
					t.Errorf("%v are refused instead of %v", got, want)
				}
			}
		}
	})
}

// TestForgottenSeries: whenever the log forgets the series that a receiver knows, each sample is stored once, and the receiver
// knows the series again.
func TestForgottenSeries(t *testing.T) {
	const points, info, requests = 12, 2, 4
	for before := 1; before <= points+info; before++ {
		r := newRig(Settings{})
		for i := range int64(requests) {
			if i == requests-2 {
				r.log.Forget(before)
			}
			if w := r.post(typeProtobuf, many(points, now+i)); w.Code != http.StatusOK || w.Body.Len() > 0 {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
		}
		got := map[string]bool{}
		for _, s := range r.log.Samples() {
			got[fmt.Sprint(s.Labels, s.T)] = true
		}
		if n := len(r.log.Samples()); n != requests*(points+info) || len(got) != n {
			t.Errorf("forgotten before sample %d: %d samples, %d of them differ", before, n, len(got))
		}
		if n := r.log.Nameless(); n > 1 || n == 0 && before == 1 {
			t.Errorf("forgotten before sample %d: %d times a request had to be translated again", before, n)
		}
	}
}

// TestSendersShareWhatIsKnown: requests of several senders at once store all that they have.
func TestSendersShareWhatIsKnown(t *testing.T) {
	const senders, requests, points, info = 4, 5, 48, 2
	r := newRig(Settings{})
	var all sync.WaitGroup
	for range senders {
		all.Go(func() {
			for i := range int64(requests) {
				if w := r.post(typeProtobuf, many(points, now+i)); w.Code != http.StatusOK || w.Body.Len() > 0 {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			}
		})
	}
	all.Wait()
	one := newRig(Settings{})
	one.post(typeProtobuf, many(points, now))
	want := map[string]bool{}
	for _, s := range one.log.Samples() {
		want[s.Labels] = true
	}
	got := map[string]bool{}
	for _, s := range r.log.Samples() {
		got[s.Labels] = true
	}
	if !cmp.Equal(got, want) || len(want) != points+info {
		t.Errorf("%d series instead of %d", len(got), len(want))
	}
}

// TestRepeatedPointsDoNotAllocate: a point of a known series costs no allocation; a request costs some.
func TestRepeatedPointsDoNotAllocate(t *testing.T) {
	const points, info, requests, perRequest = 2400, 2, 20, 200
	out := &receivertest.Sink{}
	h := New(Settings{}, 100).HTTP(receivers.NewGate(receivers.GateOptions{Name: "otlp", Limits: receivers.DefaultLimits(), Out: out, Logger: slog.New(slog.DiscardHandler)}))
	var before, after runtime.MemStats
	for i := range int64(requests + 2) {
		q := httptest.NewRequest(http.MethodPost, Path, bytes.NewReader(many(points, now+i)))
		q.Header.Set("Content-Type", typeProtobuf)
		w := httptest.NewRecorder()
		runtime.ReadMemStats(&before)
		h.ServeHTTP(w, q)
		runtime.ReadMemStats(&after)
		if mallocs := after.Mallocs - before.Mallocs; w.Code != 200 || w.Body.Len() > 0 || i > 1 && mallocs > perRequest {
			t.Errorf("request %d: %d %s, %d allocations for %d points", i, w.Code, w.Body, mallocs, points)
		}
	}
	if out.Appended() != (points+info)*(requests+2) {
		t.Errorf("%d samples arrive, not %d", out.Appended(), (points+info)*(requests+2))
	}
}
