package remotewrite

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/golang/snappy"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/storage"

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
	limits := receivers.DefaultLimits()
	limits.MemoryBytes, limits.DecodedBytes, limits.ActiveSeries = 16<<20, 4<<20, 3
	rules := receivertest.Rules(f, "[{source_labels: [__name__], regex: drop, action: drop}, {regex: b, action: labeldrop}]")
	f.Fuzz(func(t *testing.T, second bool, message []byte) {
		contentType := "application/x-protobuf"
		if second {
			contentType = content2
		}
		for _, rules := range [][]*relabel.Config{nil, rules} {
			one, other := &receivertest.Log{}, &receivertest.Log{}
			fresh, known := one.Gate("remote_write", limits, rules...), other.Gate("remote_write", limits, rules...)
			h := New(known)
			other.Fail(receivertest.ErrFull) // so nothing is stored, but the series are learnt
			send(h, contentType, message)
			other.Fail(nil)
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

// sink accepts every sample and keeps none.
type sink struct{ appended int }

func (s *sink) AppenderV2(context.Context) storage.AppenderV2 { return s }
func (s *sink) Append(storage.SeriesRef, labels.Labels, int64, int64, float64, *histogram.Histogram, *histogram.FloatHistogram, storage.AOptions) (storage.SeriesRef, error) {
	s.appended++
	return 1, nil
}
func (s *sink) Commit() error   { return nil }
func (s *sink) Rollback() error { return nil }

// TestRepeatedSamplesDoNotAllocate: a sample of a known series costs no allocation; a request costs some.
func TestRepeatedSamplesDoNotAllocate(t *testing.T) {
	const series, requests, perRequest = 2000, 20, 150
	out := &sink{}
	h := New(receivers.NewGate(receivers.GateOptions{Name: "remote_write", Limits: receivers.DefaultLimits(), Out: out, Logger: slog.New(slog.DiscardHandler)}))
	var before, after runtime.MemStats
	for i := range int64(requests + 2) {
		q := &prompb.WriteRequest{}
		for n := range series {
			q.Timeseries = append(q.Timeseries, prompb.TimeSeries{
				Labels:  pairs("__name__", "a", "job", "j", "n", fmt.Sprint(n)),
				Samples: []prompb.Sample{{Value: 1, Timestamp: i}},
			})
		}
		r := httptest.NewRequest("POST", Path, bytes.NewReader(snappy.Encode(nil, marshal(t, q))))
		r.Header.Set("Content-Encoding", "snappy")
		w := httptest.NewRecorder()
		runtime.ReadMemStats(&before)
		h.ServeHTTP(w, r)
		runtime.ReadMemStats(&after)
		if mallocs := after.Mallocs - before.Mallocs; w.Code != 204 || i > 1 && mallocs > perRequest {
			t.Errorf("request %d: %d, %d allocations for %d samples", i, w.Code, mallocs, series)
		}
	}
	if out.appended != series*(requests+2) {
		t.Errorf("%d samples arrive", out.appended)
	}
}
