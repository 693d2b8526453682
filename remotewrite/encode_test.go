package remotewrite

import (
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
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"

	"hwsagent/wal"
)

// testSeries makes n series as host probes have them.
func testSeries(n int) []*series {
	c := newSeriesCache(labels.FromStrings("site", "fra1"), nil)
	all := make([]*series, n)
	for i := range all {
		all[i] = c.get(&wal.Series{Slot: i, Labels: labels.FromStrings(
			model.MetricNameLabel, fmt.Sprintf("node_disk_written_bytes_%d_total", i%40),
			"device", fmt.Sprintf("nvme%dn1", i/40), "instance", "host-0123.example.com", "job", "host",
		)})
	}
	return all
}

// message is what the points must decode to, made with the library's own types.
func message(points []point) *prompb.WriteRequest {
	req := &prompb.WriteRequest{}
	for len(points) > 0 {
		n, _ := sameSeries(points)
		ts := prompb.TimeSeries{Labels: prompb.FromLabels(points[0].series.labels(), nil)}
		for _, p := range points[:n] {
			switch p.kind {
			case float:
				ts.Samples = append(ts.Samples, prompb.Sample{Value: p.v, Timestamp: p.t})
			case exemplarPoint:
				ts.Exemplars = append(ts.Exemplars, prompb.Exemplar{Labels: prompb.FromLabels(p.aux.labels, nil), Value: p.v, Timestamp: p.t})
			case intHistogram:
				ts.Histograms = append(ts.Histograms, prompb.FromIntHistogram(p.t, p.aux.h))
			case floatHistogram:
				ts.Histograms = append(ts.Histograms, prompb.FromFloatHistogram(p.t, p.aux.fh))
			}
		}
		req.Timeseries = append(req.Timeseries, ts)
		points = points[n:]
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

// randomPoints makes points of every kind, with runs of one series and with the
// values that encoders get wrong.
func randomPoints(r *rand.Rand, all []*series, n int) []point {
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
	points := make([]point, 0, n)
	s := all[r.IntN(len(all))]
	for range n {
		if r.IntN(3) == 0 {
			s = all[r.IntN(len(all))]
		}
		p := point{series: s, t: time()}
		switch r.IntN(8) {
		default:
			p.v = number()
		case 0:
			p.kind, p.v = exemplarPoint, number()
			p.aux = &pointAux{labels: labels.FromStrings("trace_id", fmt.Sprint(r.Uint64()), "empty", "")}
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
			p.kind, p.aux = intHistogram, &pointAux{h: h}
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
			p.kind, p.aux = floatHistogram, &pointAux{fh: h}
		}
		points = append(points, p)
	}
	return points
}

func TestEncodeEqualsLibrary(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	all := testSeries(50)
	var e encoder
	for round := range 100 {
		points := randomPoints(r, all, r.IntN(60))
		want := message(points)
		got := decode(t, e.encode(points))
		if d := cmp.Diff(want, got, compareBits); d != "" {
			t.Fatalf("seed %d, round %d (-want +got):\n%s", seed, round, d)
		}
	}
}

func FuzzEncode(f *testing.F) {
	f.Add(uint64(1), uint16(3))
	f.Add(uint64(2), uint16(200))
	all := testSeries(8)
	f.Fuzz(func(t *testing.T, seed uint64, n uint16) {
		points := randomPoints(rand.New(rand.NewPCG(seed, 0)), all, int(n%512))
		var e encoder
		if d := cmp.Diff(message(points), decode(t, e.encode(points)), compareBits); d != "" {
			t.Fatalf("(-want +got):\n%s", d)
		}
	})
}

// A series' name and labels of any length keep the length prefixes in their shortest
// form: 1, 2, 3 and 4 bytes.
func TestEncodeLengths(t *testing.T) {
	for _, n := range []int{0, 1, 90, 97, 98, 99, 100, 126, 127, 128, 129, 16000, 16360, 16383, 16384, 16400, 1 << 21, 1<<21 + 5} {
		c := newSeriesCache(labels.EmptyLabels(), nil)
		s := c.get(&wal.Series{Labels: labels.FromStrings(model.MetricNameLabel, "m", "l", string(make([]byte, n)))})
		points := []point{{series: s, t: 1, v: 2}}
		want, err := message(points).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if got := appendRequest(nil, points); string(got) != string(want) {
			t.Errorf("label value of %d bytes: not the bytes that prompb writes", n)
		}
	}
}

func TestEmptyRequest(t *testing.T) {
	var e encoder
	for _, body := range [][]byte{emptyRequest(), e.encode(nil)} {
		if got := decode(t, body); len(got.Timeseries)+len(got.Metadata) != 0 {
			t.Errorf("empty write decodes to %v", got)
		}
	}
}

func TestSameSeries(t *testing.T) {
	a, b := &series{}, &series{}
	for _, tc := range []struct {
		name   string
		points []point
		want   []int
	}{
		{"one", []point{{series: a}}, []int{1}},
		{"run", []point{{series: a}, {series: a}, {series: b}, {series: a}}, []int{2, 1, 1}},
		{"kinds", []point{{series: a}, {series: a, kind: intHistogram}, {series: a, kind: floatHistogram}, {series: a}}, []int{1, 2, 1}},
		{"exemplars", []point{{series: a}, {series: a, kind: exemplarPoint}, {series: a}, {series: b, kind: exemplarPoint}}, []int{3, 1}},
	} {
		var got []int
		for points := tc.points; len(points) > 0; points = points[got[len(got)-1]:] {
			n, _ := sameSeries(points)
			got = append(got, n)
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s: groups (-want +got):\n%s", tc.name, d)
		}
	}
}

func TestEncodeAllocatesNothing(t *testing.T) {
	points := benchPoints(2000, 1)
	var e encoder
	e.encode(points)
	if n := testing.AllocsPerRun(20, func() { e.encode(points) }); n > 0 {
		t.Errorf("encoding allocates %v times a batch, want 0", n)
	}
}

// benchPoints is a batch of n points, run adjacent ones of each series, with values
// that move as counters and gauges do.
func benchPoints(n, run int) []point {
	r := rand.New(rand.NewPCG(1, 2))
	all := testSeries(n / run)
	points := make([]point, 0, n)
	for i, s := range all {
		v := float64(r.IntN(1 << 30))
		for j := range run {
			if i%3 == 0 {
				v += float64(r.IntN(4096))
			}
			points = append(points, point{series: s, t: 1_790_000_000_000 + int64(15_000*j), v: v})
		}
	}
	return points
}

func BenchmarkEncode(b *testing.B) {
	for _, run := range []int{1, 10} {
		points := benchPoints(2000, run)
		b.Run(fmt.Sprintf("adjacent=%d", run), func(b *testing.B) {
			var e encoder
			b.ReportAllocs()
			for b.Loop() {
				e.encode(points)
			}
			perSample(b, len(points), len(e.compressed))
		})
	}
}

// perSample reports the figures that DESIGN gives per sample.
func perSample(b *testing.B, samples, bytes int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*samples), "ns/sample")
	b.ReportMetric(float64(bytes)/float64(samples), "wire-B/sample")
}

// Messages that grow by a few bytes each, as values become longer, take new memory hardly
// ever.
func TestCompressLeavesRoom(t *testing.T) {
	raw, times := make([]byte, 300_000), 0
	var dst []byte
	for n := 200_000; n < len(raw); n += 100 {
		before := cap(dst)
		if dst = compress(dst, raw[:n]); cap(dst) != before {
			times++
		}
		if got, err := snappy.Decode(nil, dst); err != nil || len(got) != n {
			t.Fatalf("%d bytes decode to %d: %v", n, len(got), err)
		}
	}
	if times > 5 {
		t.Errorf("%d of 1,000 messages took new memory", times)
	}
}
