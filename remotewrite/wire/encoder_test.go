package wire

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/golang/snappy"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
)

// testSeries is a series, and what it was made of.
type testSeries struct {
	wire   Series
	labels labels.Labels // as 1.0 sends them
	from   labels.Labels
	meta   metadata.Metadata
}

// newTestSeries makes a series that is sent with the labels that it has in the log.
func newTestSeries(f *Forms, from labels.Labels, meta metadata.Metadata) *testSeries {
	from = labels.NewBuilder(from).Labels() // without empty values
	s := &testSeries{from: from, meta: meta}
	s.wire = Series{Labels: listed(from), Meta: &s.meta}
	s.wire.Form, s.labels = f.Of(listed(from), from)
	return s
}

// kind says which call of an Encoder a sample is.
type kind uint8

const (
	float kind = iota
	intHistogram
	floatHistogram
	exemplar
)

// sample is one call of an Encoder.
type sample struct {
	series *testSeries
	kind   kind
	st, t  int64
	v      float64
	h      *histogram.Histogram
	fh     *histogram.FloatHistogram
	labels labels.Labels // of an exemplar
}

// testEncoder is an Encoder with memory for a body.
type testEncoder struct {
	Encoder
	body []byte
}

// encode returns the body of a request with the samples, valid until the encoder's next.
func encode(e *testEncoder, v Version, samples []sample) []byte {
	write(&e.Encoder, v, Snappy, samples)
	e.body = e.AppendBody(e.body[:0])
	return e.body
}

// write makes e encode the samples.
func write(e *Encoder, v Version, by Compression, samples []sample) {
	e.Begin(v, by)
	for i := range samples {
		p := &samples[i]
		if i == 0 || p.series != samples[i-1].series {
			e.Series(p.series.wire)
		}
		switch p.kind {
		case float:
			e.Float(p.st, p.t, p.v)
		case exemplar:
			e.Exemplar(p.t, p.v, p.labels)
		default:
			e.Histogram(p.st, p.t, p.h, p.fh)
		}
	}
}

// listed returns labels as a list.
func listed(ls labels.Labels) (all []labels.Label) {
	ls.Range(func(l labels.Label) { all = append(all, l) })
	return all
}

// manySeries makes n series as host probes have them.
func manySeries(n int) []*testSeries {
	e := NewForms(V1)
	all := make([]*testSeries, n)
	for i := range all {
		all[i] = newTestSeries(e, hostLabels(i), metadata.Metadata{})
	}
	return all
}

func hostLabels(i int) labels.Labels {
	return labels.FromStrings(
		model.MetricNameLabel, fmt.Sprintf("node_disk_written_bytes_%d_total", i%40),
		"device", fmt.Sprintf("nvme%dn1", i/40), "instance", "host-0123.example.com", "job", "host", "site", "fra1",
	)
}

// sameSeries says how many samples at the front share a TimeSeries by the protocol's rules,
// and how many of them are exemplars.
func sameSeries(samples []sample) (n, exemplars int) {
	last, floats, histograms := int64(math.MinInt64), false, false
	for n = range samples {
		p := &samples[n]
		if p.series != samples[0].series {
			return n, exemplars
		}
		if p.kind == exemplar {
			exemplars++
			continue
		}
		floats, histograms = floats || p.kind == float, histograms || p.kind != float
		if floats && histograms || p.t < last {
			return n, exemplars
		}
		last = p.t
	}
	return len(samples), exemplars
}

// message is what the samples must decode to, made with the library's own types.
func message(samples []sample) *prompb.WriteRequest {
	req := &prompb.WriteRequest{}
	for len(samples) > 0 {
		n, _ := sameSeries(samples)
		ts := prompb.TimeSeries{Labels: prompb.FromLabels(samples[0].series.labels, nil)}
		for _, p := range samples[:n] {
			switch p.kind {
			case float:
				ts.Samples = append(ts.Samples, prompb.Sample{Value: p.v, Timestamp: p.t})
			case exemplar:
				ts.Exemplars = append(ts.Exemplars, prompb.Exemplar{Labels: prompb.FromLabels(p.labels, nil), Value: p.v, Timestamp: p.t})
			case intHistogram:
				ts.Histograms = append(ts.Histograms, prompb.FromIntHistogram(p.t, p.h))
			case floatHistogram:
				ts.Histograms = append(ts.Histograms, prompb.FromFloatHistogram(p.t, p.fh))
			}
		}
		req.Timeseries = append(req.Timeseries, ts)
		samples = samples[n:]
	}
	return req
}

// compareBits compares floats by their bits, so that stale markers and negative
// zeros count.
var compareBits = cmp.Options{
	cmp.Comparer(func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }),
	cmpopts.EquateEmpty(),
}

func decode(t testing.TB, body []byte) *prompb.WriteRequest {
	t.Helper()
	raw, err := snappy.Decode(nil, body)
	if err != nil {
		t.Fatalf("decompress body: %v", err)
	}
	got := &prompb.WriteRequest{}
	if err := got.Unmarshal(raw); err != nil {
		t.Fatalf("decode request: %v", err)
	}
	return got
}

// randomSamples makes samples of every kind, with runs of one series and with the
// values that encoders get wrong.
func randomSamples(r *rand.Rand, all []*testSeries, n int) []sample {
	oddFloats := []float64{0, math.Copysign(0, -1), math.NaN(), math.Float64frombits(value.StaleNaN),
		math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64, 1}
	number := func() float64 {
		if r.IntN(3) == 0 {
			return oddFloats[r.IntN(len(oddFloats))]
		}
		return r.NormFloat64() * 1e6
	}
	time := func() int64 {
		if r.IntN(10) == 0 {
			return []int64{0, -1, math.MinInt64, math.MaxInt64, 1}[r.IntN(5)]
		}
		return 1_700_000_000_000 + r.Int64N(1e9)
	}
	spans := func() (s []histogram.Span, buckets int) {
		for range r.IntN(4) {
			l := r.IntN(40)
			s = append(s, histogram.Span{Offset: int32(r.Uint32()), Length: uint32(l)})
			buckets += l
		}
		return s, buckets
	}
	samples := make([]sample, 0, n)
	s := all[r.IntN(len(all))]
	for range n {
		if r.IntN(3) == 0 {
			s = all[r.IntN(len(all))]
		}
		p := sample{series: s, t: time()}
		switch r.IntN(8) {
		default:
			p.v = number()
		case 0:
			p.kind, p.v = exemplar, number()
			p.labels = labels.FromStrings("trace_id", fmt.Sprint(r.Uint64()), "empty", "")
		case 1:
			h := &histogram.Histogram{Count: r.Uint64() >> r.IntN(64), ZeroCount: r.Uint64() >> r.IntN(64), Sum: number(),
				ZeroThreshold: number(), Schema: int32(r.IntN(13) - 4), CounterResetHint: histogram.CounterResetHint(r.IntN(4))}
			var np, nn int
			h.PositiveSpans, np = spans()
			h.NegativeSpans, nn = spans()
			for range np {
				h.PositiveBuckets = append(h.PositiveBuckets, int64(r.Uint64())>>r.IntN(64))
			}
			for range nn {
				h.NegativeBuckets = append(h.NegativeBuckets, int64(r.Uint64())>>r.IntN(64))
			}
			p.kind, p.h = intHistogram, h
		case 2:
			h := &histogram.FloatHistogram{Count: number(), ZeroCount: number(), Sum: number(),
				ZeroThreshold: number(), Schema: int32(r.IntN(13) - 4), CounterResetHint: histogram.CounterResetHint(r.IntN(4))}
			var np, nn int
			h.PositiveSpans, np = spans()
			h.NegativeSpans, nn = spans()
			for range np {
				h.PositiveBuckets = append(h.PositiveBuckets, number())
			}
			for range nn {
				h.NegativeBuckets = append(h.NegativeBuckets, number())
			}
			p.kind, p.fh = floatHistogram, h
		}
		samples = append(samples, p)
	}
	return samples
}

func TestEncodeEqualsLibrary(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: one goroutine, of which the race detector has nothing to say")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	all := manySeries(50)
	var e testEncoder
	for round := range 100 {
		samples := randomSamples(r, all, r.IntN(60))
		want := message(samples)
		got := decode(t, encode(&e, V1, samples))
		if d := cmp.Diff(want, got, compareBits); d != "" {
			t.Fatalf("seed %d, round %d (-want +got):\n%s", seed, round, d)
		}
	}
}

func FuzzEncode(f *testing.F) {
	f.Add(uint64(1), uint16(3))
	f.Add(uint64(2), uint16(200))
	all := manySeries(8)
	f.Fuzz(func(t *testing.T, seed uint64, n uint16) {
		samples := randomSamples(rand.New(rand.NewPCG(seed, 0)), all, int(n%512))
		var e testEncoder
		if d := cmp.Diff(message(samples), decode(t, encode(&e, V1, samples)), compareBits); d != "" {
			t.Fatalf("(-want +got):\n%s", d)
		}
	})
}

// A series' name and labels of any length keep the length prefixes in their shortest
// form: 1, 2, 3 and 4 bytes.
func TestEncodeLengths(t *testing.T) {
	for _, n := range []int{0, 1, 90, 97, 98, 99, 100, 126, 127, 128, 129, 16000, 16360, 16383, 16384, 16400, 1 << 21, 1<<21 + 5} {
		s := newTestSeries(NewForms(V1), labels.FromStrings(model.MetricNameLabel, "m", "l", string(make([]byte, n))), metadata.Metadata{})
		samples := []sample{{series: s, t: 1, v: 2}}
		want, err := message(samples).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		var e testEncoder
		write(&e.Encoder, V1, Zstd, samples) // for snappy, complete blocks are compressed meanwhile
		if got := e.rest(); string(got) != string(want) {
			t.Errorf("label value of %d bytes: not the bytes that prompb writes", n)
		}
	}
}

func TestEmptyRequest(t *testing.T) {
	var e testEncoder
	for _, body := range [][]byte{Empty(V1), encode(&e, V1, nil)} {
		if got := decode(t, body); len(got.Timeseries)+len(got.Metadata) != 0 {
			t.Errorf("empty write decodes to %v", got)
		}
	}
}

// Adjacent samples of a series share a TimeSeries, but floats and histograms, or samples
// that go back in time, never do.
func TestTimeSeriesBoundaries(t *testing.T) {
	all := manySeries(2)
	a, b, h := all[0], all[1], &histogram.Histogram{}
	for _, tc := range []struct {
		name    string
		samples []sample
		want    int
	}{
		{"one", []sample{{series: a}}, 1},
		{"run", []sample{{series: a}, {series: a}, {series: b}, {series: a}}, 3},
		{"kinds", []sample{{series: a}, {series: a, kind: intHistogram, h: h}, {series: a, kind: intHistogram, h: h}, {series: a}}, 3},
		{"exemplars", []sample{{series: a}, {series: a, kind: exemplar}, {series: a}, {series: b, kind: exemplar}}, 2},
		{"back in time", []sample{{series: a, t: 2}, {series: a, t: 1}, {series: a, t: 1}}, 2},
	} {
		var e testEncoder
		if got := decode(t, encode(&e, V1, tc.samples)); len(got.Timeseries) != tc.want {
			t.Errorf("%s: %d TimeSeries, want %d", tc.name, len(got.Timeseries), tc.want)
		}
	}
}

func TestEncodeAllocatesNothing(t *testing.T) {
	samples := benchSamples(2000, 1)
	var e testEncoder
	encode(&e, V1, samples)
	if n := testing.AllocsPerRun(20, func() { encode(&e, V1, samples) }); n > 0 {
		t.Errorf("encoding allocates %v times a batch, want 0", n)
	}
}

// benchSamples is a batch of n samples, run adjacent ones of each series, with values
// that move as counters and gauges do.
func benchSamples(n, run int) []sample {
	r := rand.New(rand.NewPCG(1, 2))
	all := manySeries(n / run)
	samples := make([]sample, 0, n)
	for i, s := range all {
		v := float64(r.IntN(1 << 30))
		for j := range run {
			if i%3 == 0 {
				v += float64(r.IntN(4096))
			}
			samples = append(samples, sample{series: s, t: 1_790_000_000_000 + int64(15_000*j), v: v})
		}
	}
	return samples
}

func BenchmarkEncode(b *testing.B) {
	for _, run := range []int{1, 10} {
		samples := benchSamples(2000, run)
		b.Run(fmt.Sprintf("adjacent=%d", run), func(b *testing.B) {
			var e testEncoder
			b.ReportAllocs()
			for b.Loop() {
				encode(&e, V1, samples)
			}
			perSample(b, len(samples), len(e.compressor.packed))
		})
	}
}

// perSample reports the figures that DESIGN gives per sample.
func perSample(b *testing.B, samples, bytes int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*samples), "ns/sample")
	b.ReportMetric(float64(bytes)/float64(samples), "wire-B/sample")
}

// A message that is compressed block by block, while it is written, is the same snappy block as one that is compressed at
// once, whatever its length, and its encoder can be used again.
func TestSnappyBody(t *testing.T) {
	noise := make([]byte, 5*blockSize)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise) // it returns no error
	var c compressor
	for _, size := range []int{0, 1, 16, 17, 1000, blockSize - 1, blockSize, blockSize + 1, blockSize + 16, 2 * blockSize, 3*blockSize + 5, 5 * blockSize} {
		for name, raw := range map[string][]byte{"noise": noise[:size], "zeros": make([]byte, size)} {
			for _, step := range []int{1000, blockSize - 3, blockSize, 2*blockSize + 1, 6 * blockSize} {
				c.reset()
				var buf []byte
				for at := 0; at < size; at += step {
					buf = c.take(append(buf, raw[at:min(at+step, size)]...))
				}
				body := c.appendSnappy([]byte("before"), buf)
				if want := append([]byte("before"), snappy.Encode(nil, raw)...); !bytes.Equal(body, want) {
					t.Errorf("%d bytes of %s, %d at a time: %d bytes, want %d, %t", size, name, step, len(body), len(want), bytes.HasPrefix(body, want[:6]))
				}
			}
		}
	}
}

// The types generated by gogo/protobuf lose the sign of a negative zero, which is another value for Prometheus: it
// refuses such a sample as a duplicate if it has the right one. So all messages with samples go through Encoder, even where
// speed does not matter: in a replay, and for a resent sample.
func TestOnlyEncoderKeepsNegativeZero(t *testing.T) {
	s := manySeries(1)[0]
	zero := math.Copysign(0, -1)
	got := decode(t, encode(new(testEncoder), V1, []sample{{series: s, t: 1, v: zero}}))
	if v := got.Timeseries[0].Samples[0].Value; !math.Signbit(v) {
		t.Errorf("Encoder sends %v, want -0", v)
	}
	if got = decode(t, Body(got)); math.Signbit(got.Timeseries[0].Samples[0].Value) {
		t.Error("the library keeps the sign: messages that are rare can be made of its types")
	}
}
