package remotewrite

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"net/http/httptest"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang/snappy"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"hwsagent/receivers"
	"hwsagent/receivers/receivertest"
)

// FuzzFloats1 holds the raw decoder to prompb: what it accepts has the same floats and nothing else, and the key has the
// labels.
func FuzzFloats1(f *testing.F) {
	for _, s := range []prompb.TimeSeries{
		{},
		{Labels: pairs("__name__", "a", "b", "c"), Samples: []prompb.Sample{{Value: 1, Timestamp: 2}, {}, {Value: math.Inf(1), Timestamp: -1}}},
		{Labels: pairs("__name__", "", "", "c"), Samples: []prompb.Sample{{Timestamp: math.MaxInt64}}},
		{Labels: pairs("__name__", "a"), Samples: []prompb.Sample{{Value: 1}}, Exemplars: []prompb.Exemplar{{Value: 1}}},
	} {
		f.Add(marshal(f, &s))
	}
	f.Add([]byte("\x0a\x04\x0a\x00\x0a\x00\x12\x00"))                             // a name twice
	f.Add([]byte("\x0a\x01\xff\x12\x00"))                                         // a label that is no message
	f.Add([]byte("\x12\x0b\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x0a\x00")) // a time of more than 64 bits
	f.Fuzz(func(t *testing.T, message []byte) {
		key, floats, plain := floats1(message, nil)
		if !plain {
			return
		}
		var whole, head prompb.TimeSeries
		if err := whole.Unmarshal(message); err != nil {
			t.Fatalf("prompb refuses it: %v", err)
		}
		if err := head.Unmarshal(key); err != nil {
			t.Fatalf("prompb refuses the key: %v", err)
		}
		same := len(floats) == len(whole.Samples)
		for i := 0; same && i < len(floats); i++ {
			same = floats[i].Timestamp == whole.Samples[i].Timestamp && math.Float64bits(floats[i].Value) == math.Float64bits(whole.Samples[i].Value)
		}
		if !same {
			t.Errorf("%v instead of %v", floats, whole.Samples)
		}
		if diff := cmp.Diff(whole.Labels, head.Labels); diff != "" || len(whole.Exemplars)+len(whole.Histograms) > 0 {
			t.Errorf("%s; %v, %v", diff, whole.Exemplars, whole.Histograms)
		}
		name := ""
		if i := slices.IndexFunc(whole.Labels, func(l prompb.Label) bool { return l.Name == "__name__" }); i >= 0 {
			name = whole.Labels[i].Value
		}
		if got := nameOf(key); string(got) != name {
			t.Errorf("the name is %q instead of %q", got, name)
		}
	})
}

// FuzzPlain2 holds the raw decoder to the generated one: what it accepts has the same references, floats and metadata, and
// nothing else.
func FuzzPlain2(f *testing.F) {
	for _, s := range []writev2.TimeSeries{
		{},
		{
			LabelsRefs: []uint32{1, 2, 300, math.MaxUint32}, Samples: []writev2.Sample{{Value: 1, Timestamp: 2, StartTimestamp: 1}, {}, {Value: math.NaN(), Timestamp: -1}},
			Metadata: writev2.Metadata{Type: writev2.Metadata_METRIC_TYPE_COUNTER, HelpRef: 7, UnitRef: 8},
		},
		{LabelsRefs: []uint32{0}, Metadata: writev2.Metadata{UnitRef: math.MaxUint32}},
		{LabelsRefs: []uint32{1, 2}, Samples: []writev2.Sample{{Value: 1}}, Exemplars: []writev2.Exemplar{{Value: 1}}},
	} {
		f.Add(marshal(f, &s))
	}
	f.Add([]byte("\x08\x01\x08\x02\x12\x00"))                         // references that are not packed
	f.Add([]byte("\x0a\x01\x01\x0a\x01\x02"))                         // in two parts
	f.Add([]byte("\x0a\x05\xff\xff\xff\xff\x7f"))                     // one of more than 32 bits
	f.Add([]byte("\x2a\x06\x08\xff\xff\xff\xff\x7f\x2a\x02\x18\x01")) // metadata twice, with a type of more than 32 bits
	f.Fuzz(func(t *testing.T, message []byte) {
		p := plain2{refs: []uint32{1}, floats: []float2{{}}, kind: 1, help: 1, unit: 1} // of the series before
		if !p.read(message) {
			return
		}
		var whole writev2.TimeSeries
		if err := whole.Unmarshal(message); err != nil {
			t.Fatalf("the generated code refuses it: %v", err)
		}
		same := len(p.floats) == len(whole.Samples)
		for i := 0; same && i < len(p.floats); i++ {
			s := &whole.Samples[i]
			same = p.floats[i].t == s.Timestamp && p.floats[i].st == s.StartTimestamp && math.Float64bits(p.floats[i].v) == math.Float64bits(s.Value)
		}
		if !same {
			t.Errorf("%v instead of %v", p.floats, whole.Samples)
		}
		if m := whole.Metadata; !slices.Equal(p.refs, whole.LabelsRefs) || p.kind != int32(m.Type) || p.help != m.HelpRef || p.unit != m.UnitRef {
			t.Errorf("%+v instead of %v, %v", p, whole.LabelsRefs, m)
		}
		if len(whole.Exemplars)+len(whole.Histograms) > 0 {
			t.Errorf("%v, %v", whole.Exemplars, whole.Histograms)
		}
	})
}

// FuzzKnown: a receiver that knows the series answers and stores as one that does not.
func FuzzKnown(f *testing.F) {
	f.Add(false, request1(f))
	f.Add(true, request2(f))
	f.Add(false, marshal(f, &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{
		{Labels: pairs("__name__", "drop", "b", "c"), Samples: []prompb.Sample{{Value: 1, Timestamp: 2}}},
		{Labels: pairs("__name__", "a", "b", "c"), Samples: []prompb.Sample{{Value: 1, Timestamp: 2}, {Value: 2, Timestamp: 2}, {Value: 2, Timestamp: 1}}},
		{Labels: pairs("b", "c", "__name__", "a"), Samples: []prompb.Sample{{Value: 3, Timestamp: 4}}},
		{Labels: pairs("__name__", "a", "__name__", "c"), Samples: []prompb.Sample{{Value: 3, Timestamp: 4}}},
		{Labels: pairs("b", "c"), Samples: []prompb.Sample{{Value: 3, Timestamp: 4}}},
	}}))
	f.Add(true, known2(f))
	limits := receivers.DefaultLimits()
	limits.MemoryBytes, limits.DecodedBytes, limits.ActiveSeries = 16<<20, 4<<20, 3
	rules := receivertest.Rules(f, "[{source_labels: [__name__], regex: drop, action: drop}, {regex: b, action: labeldrop}]")
	f.Fuzz(func(t *testing.T, second bool, message []byte) {
		contentType := "application/x-protobuf"
		if second {
			contentType = content2
		}
		for i, rules := range [][]*relabel.Config{nil, nil, rules, rules} {
			one, other := &receivertest.Log{}, &receivertest.Log{}
			fresh, known := one.Gate("remote_write", limits, rules...), other.Gate("remote_write", limits, rules...)
			h := New(known)
			other.Fail(receivertest.ErrFull) // so nothing is stored, but the series are learnt
			send(h, contentType, message)
			other.Fail(nil)
			other.Forget(i % 2)
			got, want := send(h, contentType, message), send(New(fresh), contentType, message)
			if got.Code != want.Code || got.Body.String() != want.Body.String() || cmp.Diff(got.Header(), want.Header()) != "" {
				t.Errorf("%d %s instead of %d %s", got.Code, got.Body, want.Code, want.Body)
			}
			if got, want := fmt.Sprintf("%+v", other.Samples()), fmt.Sprintf("%+v", one.Samples()); got != want {
				t.Errorf("%s instead of %s", got, want)
			}
		}
	})
}

// TestForgottenSeries: whenever the log forgets the series that a receiver knows, also between two samples of one, each sample
// is stored once, and the receiver knows the series again.
func TestForgottenSeries(t *testing.T) {
	const series, each, requests = 3, 2, 4
	rules := receivertest.Rules(t, "[{regex: b, action: labeldrop}]")
	request1 := func(at int64) []byte {
		q := &prompb.WriteRequest{}
		for n := range series {
			q.Timeseries = append(q.Timeseries, prompb.TimeSeries{
				Labels: pairs("__name__", "a", "b", "c", "n", fmt.Sprint(n)), Samples: []prompb.Sample{{Timestamp: at}, {Timestamp: at + 1}},
			})
		}
		return marshal(t, q)
	}
	request2 := func(at int64) []byte {
		q, symbols := &writev2.Request{}, writev2.NewSymbolTable()
		for n := range series {
			q.Timeseries = append(q.Timeseries, writev2.TimeSeries{
				LabelsRefs: symbols.SymbolizeLabels(labels.FromStrings("__name__", "a", "b", "c", "n", fmt.Sprint(n)), nil),
				Samples:    []writev2.Sample{{Timestamp: at}, {Timestamp: at + 1}},
			})
		}
		q.Symbols = symbols.Symbols()
		return marshal(t, q)
	}
	for contentType, request := range map[string]func(at int64) []byte{"application/x-protobuf": request1, content2: request2} {
		for before := 1; before <= series*each; before++ {
			log := &receivertest.Log{}
			h := New(log.Gate("remote_write", receivers.DefaultLimits(), rules...))
			for i := range int64(requests) {
				if i == requests-2 {
					log.Forget(before)
				}
				if w := send(h, contentType, request(each*i)); w.Code != 204 {
					t.Fatalf("%s: %d %s", contentType, w.Code, w.Body)
				}
			}
			got := map[string]int{}
			for _, s := range log.Samples() {
				got[fmt.Sprint(s.Labels, s.T)]++
			}
			for n := range series {
				for at := range requests * each {
					if k := got[fmt.Sprintf("{__name__=%q, n=%q}%d", "a", fmt.Sprint(n), at)]; k != 1 {
						t.Errorf("%s, forgotten before sample %d: the one of series %d at %d is stored %d times", contentType, before, n, at, k)
					}
				}
			}
			if n := log.Nameless(); n != 1 {
				t.Errorf("%s, forgotten before sample %d: labels were missing %d times, want once", contentType, before, n)
			}
		}
	}
}

// TestKnownSeriesKeepTheirPlace: a series that repeats counts as active for as long as it is sent, and no longer.
func TestKnownSeriesKeepTheirPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := receivers.DefaultLimits()
		limits.ActiveSeries = 1
		h := New((&receivertest.Log{}).Gate("remote_write", limits))
		at := int64(0)
		post := func(name string, want int) {
			t.Helper()
			at++
			q := &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{Labels: pairs("__name__", name), Samples: []prompb.Sample{{Timestamp: at}}}}}
			if w := send(h, "", marshal(t, q)); w.Code != want {
				t.Fatalf("%s after %d requests: %d %s", name, at, w.Code, w.Body)
			}
		}
		for range 30 {
			post("a", 204)
			post("b", 400)
			time.Sleep(9 * time.Minute)
		}
		time.Sleep(2 * time.Hour)
		post("b", 204)
		post("a", 400)
	})
}

// TestKnownSeriesKeepTheirMetadata: a series that repeats has the metadata of its own family, which may change.
func TestKnownSeriesKeepTheirMetadata(t *testing.T) {
	log := &receivertest.Log{}
	h := New(log.Gate("remote_write", receivers.DefaultLimits()))
	for i, help := range []string{"", "old", "old", "new", "new"} {
		q := &prompb.WriteRequest{}
		if help != "" {
			q.Metadata = []prompb.MetricMetadata{{MetricFamilyName: "a", Help: help}, {MetricFamilyName: "b", Help: "b's"}}
		}
		for _, name := range []string{"a_total", "a_total", "b", "none", "a_total"} {
			n := len(q.Timeseries)
			q.Timeseries = append(q.Timeseries, prompb.TimeSeries{Labels: pairs("__name__", name, "n", fmt.Sprint(n)), Samples: []prompb.Sample{{Timestamp: int64(i)}}})
		}
		if w := send(h, "", marshal(t, q)); w.Code != 204 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	all := log.Samples()
	if len(all) != 25 {
		t.Fatalf("%d samples", len(all))
	}
	for i, s := range all {
		family := [...]string{"a", "a", "b", "", "a"}[i%5]
		help := map[string]string{"a": [...]string{"", "", "old", "old", "new"}[s.T], "b": "b's"}[family]
		if s.T < 2 { // metadata concerns the requests that follow
			family, help = "", ""
		}
		if s.Family != family || s.Help != help {
			t.Errorf("%s at %d: family %q, %q; want %q, %q", s.Labels, s.T, s.Family, s.Help, family, help)
		}
	}
}

// known2 is a request of 2.0 whose series are good and bad in many ways.
func known2(t testing.TB) []byte {
	q := &writev2.Request{Symbols: []string{"", "__name__", "a", "b", "c", "drop", "Help.", "bytes"}}
	one := []writev2.Sample{{Value: 1, Timestamp: 2, StartTimestamp: 1}}
	for _, refs := range [][]uint32{{1, 2, 3, 4}, {1, 5, 3, 4}, {3, 4, 1, 2}, {1, 2, 1, 4}, {3, 4}, {}, {1, 2, 0, 4}, {1, 2, 3, 0}} {
		for _, m := range []writev2.Metadata{{}, {Type: writev2.Metadata_METRIC_TYPE_GAUGE, HelpRef: 6, UnitRef: 7}, {HelpRef: 7}} {
			q.Timeseries = append(q.Timeseries, writev2.TimeSeries{LabelsRefs: refs, Samples: one, Metadata: m})
		}
	}
	q.Timeseries = append(q.Timeseries, writev2.TimeSeries{LabelsRefs: []uint32{1, 2}, Samples: []writev2.Sample{{Value: 1, Timestamp: 2}, {Value: 2, Timestamp: 2}, {Value: 2, Timestamp: 1}}})
	return marshal(t, q)
}

// TestRepeatedSamplesDoNotAllocate: a sample of a known series costs no allocation, with metadata or without; a request
// costs some, and no buffer for its body.
func TestRepeatedSamplesDoNotAllocate(t *testing.T) {
	const series, requests, perRequest, bytesPerRequest = 2000, 20, 150, 16 << 10
	for contentType, request := range map[string]func(t testing.TB, series int, at int64) []byte{"application/x-protobuf": many1, content2: many2} {
		out := &receivertest.Sink{}
		h := New(receivers.NewGate(receivers.GateOptions{Name: "remote_write", Limits: receivers.DefaultLimits(), Out: out, Logger: slog.New(slog.DiscardHandler)}))
		var before, after runtime.MemStats
		for i := range int64(requests + 2) {
			r := httptest.NewRequest("POST", Path, bytes.NewReader(snappy.Encode(nil, request(t, series, i))))
			r.Header.Set("Content-Encoding", "snappy")
			r.Header.Set("Content-Type", contentType)
			w := httptest.NewRecorder()
			runtime.ReadMemStats(&before)
			h.ServeHTTP(w, r)
			runtime.ReadMemStats(&after)
			mallocs, allocated := after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc
			if w.Code != 204 || i > 1 && (mallocs > perRequest || allocated > bytesPerRequest) {
				t.Errorf("%s, request %d: %d, %d allocations of %d bytes for %d samples", contentType, i, w.Code, mallocs, allocated, series)
			}
		}
		if out.Appended() != series*(requests+2) {
			t.Errorf("%s: %d samples arrive", contentType, out.Appended())
		}
	}
}

// many1 is a request of 1.0 with one sample for each of many series.
func many1(t testing.TB, series int, at int64) []byte {
	q := &prompb.WriteRequest{}
	for n := range series {
		q.Timeseries = append(q.Timeseries, prompb.TimeSeries{
			Labels:  pairs("__name__", "a", "job", "j", "n", fmt.Sprint(n)),
			Samples: []prompb.Sample{{Value: 1, Timestamp: at}},
		})
	}
	return marshal(t, q)
}

// many2 is the same of 2.0, with metadata. The numbers of the symbols differ from one request to the next.
func many2(t testing.TB, series int, at int64) []byte {
	q, symbols := &writev2.Request{}, writev2.NewSymbolTable()
	symbols.Symbolize(fmt.Sprint("first ", at))
	for i := range series {
		n := (i + int(at)) % series
		q.Timeseries = append(q.Timeseries, writev2.TimeSeries{
			LabelsRefs: symbols.SymbolizeLabels(labels.FromStrings("__name__", "a", "job", "j", "n", fmt.Sprint(n)), nil),
			Samples:    []writev2.Sample{{Value: 1, Timestamp: at, StartTimestamp: 1}},
			Metadata:   writev2.Metadata{Type: writev2.Metadata_METRIC_TYPE_COUNTER, HelpRef: symbols.Symbolize(fmt.Sprint("help ", n/10)), UnitRef: symbols.Symbolize("bytes")},
		})
	}
	q.Symbols = symbols.Symbols()
	return marshal(t, q)
}
