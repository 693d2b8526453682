package remotewrite

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/golang/snappy"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"hwsagent/wal"
)

// testSeries2 makes n series as testSeries does, some with metadata, some with names that
// only remote write 2.0 carries.
func testSeries2(n int) []*series {
	c := newSeriesCache(labels.FromStrings("site", "fra1"), nil)
	c.moderns = map[metadata.Metadata]*modern{}
	types := []model.MetricType{model.MetricTypeCounter, model.MetricTypeGauge, model.MetricTypeHistogram, model.MetricTypeGaugeHistogram,
		model.MetricTypeSummary, model.MetricTypeInfo, model.MetricTypeStateset, model.MetricTypeUnknown}
	all := make([]*series, n)
	for i := range all {
		s := &wal.Series{Slot: i, Labels: labels.FromStrings(
			model.MetricNameLabel, fmt.Sprintf("node_disk_written_bytes_%d_total", i%40),
			"device", fmt.Sprintf("nvme%dn1", i/40), "instance", "host-0123.example.com", "job", "host",
		)}
		switch i % 10 {
		case 0:
			s.Labels = labels.FromStrings(model.MetricNameLabel, fmt.Sprintf("hw.temperature_%d", i), "hw.id", strings.Repeat("ä", i%200))
		case 1:
		default:
			s.About = &wal.About{Meta: metadata.Metadata{Type: types[i%len(types)], Help: fmt.Sprintf("Bytes written, of kind %d.", i%40), Unit: []string{"", "bytes"}[i%2]}}
		}
		all[i] = c.get(s)
	}
	return all
}

// randomPoints2 makes points with what only remote write 2.0 carries, too.
func randomPoints2(r *rand.Rand, all []*series, n int) []point {
	points := randomPoints(r, all, n)
	for i := range points {
		p := &points[i]
		if p.kind == exemplarPoint {
			continue
		}
		if r.IntN(2) == 0 {
			p.st = []int64{1, -1, math.MinInt64, math.MaxInt64, p.t - 3_600_000}[r.IntN(5)]
		}
		bounds := make([]float64, r.IntN(4))
		for i := range bounds {
			bounds[i] = float64(i) + r.Float64()
		}
		switch {
		case r.IntN(2) == 0:
		case p.kind == intHistogram:
			p.aux.h.Schema, p.aux.h.CustomValues = histogram.CustomBucketsSchema, bounds
		case p.kind == floatHistogram:
			p.aux.fh.Schema, p.aux.fh.CustomValues = histogram.CustomBucketsSchema, bounds
		}
	}
	return points
}

// series2 is a writev2.TimeSeries with its references resolved.
type series2 struct {
	Labels     string
	Samples    []writev2.Sample
	Histograms []writev2.Histogram
	Exemplars  []exemplar2
	Meta       metadata.Metadata
}

type exemplar2 struct {
	Labels string
	T      int64
	V      float64
}

// message2 is what points must decode to, made with the library's own types.
func message2(points []point) (all []series2) {
	for len(points) > 0 {
		n, exemplars := sameSeries(points)
		if exemplars == n {
			points = points[n:]
			continue
		}
		from := points[0].series
		s := series2{Labels: from.from.Labels.String()}
		if b := labels.NewBuilder(from.from.Labels); b.Get("site") == "" {
			s.Labels = b.Set("site", "fra1").Labels().String()
		}
		if s.Meta = from.from.Meta(); s.Meta.Type == "" {
			s.Meta.Type = model.MetricTypeUnknown
		}
		for _, p := range points[:n] {
			switch p.kind {
			case float:
				s.Samples = append(s.Samples, writev2.Sample{Value: p.v, Timestamp: p.t, StartTimestamp: p.st})
			case exemplarPoint:
				s.Exemplars = append(s.Exemplars, exemplar2{p.aux.labels.String(), p.t, p.v})
			case intHistogram:
				s.Histograms = append(s.Histograms, writev2.FromIntHistogram(p.st, p.t, p.aux.h))
			case floatHistogram:
				s.Histograms = append(s.Histograms, writev2.FromFloatHistogram(p.st, p.t, p.aux.fh))
			}
		}
		all = append(all, s)
		points = points[n:]
	}
	return all
}

func decodeRequest2(t testing.TB, body []byte) *writev2.Request {
	t.Helper()
	raw, err := snappy.Decode(nil, body)
	if err != nil {
		t.Fatalf("decompress body: %v", err)
	}
	got := &writev2.Request{}
	if err := got.Unmarshal(raw); err != nil {
		t.Fatalf("decode request: %v", err)
	}
	return got
}

// decode2 decodes a body with the library's unmarshaller and helpers.
func decode2(t testing.TB, body []byte) (all []series2) {
	t.Helper()
	req := decodeRequest2(t, body)
	b := labels.NewScratchBuilder(0)
	for _, ts := range req.Timeseries {
		ls, err := ts.ToLabels(&b, req.Symbols)
		if err != nil {
			t.Fatal(err)
		}
		s := series2{Labels: ls.String(), Samples: ts.Samples, Histograms: ts.Histograms}
		if s.Meta, err = ts.ToMetadata(req.Symbols); err != nil {
			t.Fatal(err)
		}
		for _, x := range ts.Exemplars {
			e, err := x.ToExemplar(&b, req.Symbols)
			if err != nil {
				t.Fatal(err)
			}
			s.Exemplars = append(s.Exemplars, exemplar2{e.Labels.String(), e.Ts, e.Value})
		}
		all = append(all, s)
	}
	return all
}

func TestEncode2EqualsLibrary(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	all := testSeries2(400)
	e := newEncoder2()
	for round := range 100 {
		points := randomPoints2(r, all[:1+r.IntN(len(all))], r.IntN(60))
		if d := cmp.Diff(message2(points), decode2(t, e.encode(points)), compareBits); d != "" {
			t.Fatalf("seed %d, round %d (-want +got):\n%s", seed, round, d)
		}
	}
}

func FuzzEncode2(f *testing.F) {
	f.Add(uint64(1), uint16(3))
	f.Add(uint64(2), uint16(200))
	all := testSeries2(50)
	f.Fuzz(func(t *testing.T, seed uint64, n uint16) {
		points := randomPoints2(rand.New(rand.NewPCG(seed, 0)), all, int(n%512))
		if d := cmp.Diff(message2(points), decode2(t, newEncoder2().encode(points)), compareBits); d != "" {
			t.Fatalf("(-want +got):\n%s", d)
		}
	})
}

// Texts of any length keep the length prefixes right: of 1, 2, 3 and 4 bytes.
func TestEncode2Lengths(t *testing.T) {
	for _, n := range []int{1, 90, 97, 98, 99, 100, 125, 126, 127, 128, 129, 16000, 16383, 16384, 16400, 1 << 21, 1<<21 + 5} {
		c := newSeriesCache(labels.EmptyLabels(), nil)
		c.moderns = map[metadata.Metadata]*modern{}
		long := strings.Repeat("x", n)
		s := c.get(&wal.Series{Labels: labels.FromStrings(model.MetricNameLabel, "m", "a"+long, long), About: &wal.About{Meta: metadata.Metadata{Help: long}}})
		got := decode2(t, newEncoder2().encode([]point{{series: s, t: 1, v: 2}}))
		want := []series2{{
			Labels: s.from.Labels.String(), Samples: []writev2.Sample{{Value: 2, Timestamp: 1}},
			Meta: metadata.Metadata{Type: model.MetricTypeUnknown, Help: long},
		}}
		if d := cmp.Diff(want, got, compareBits); d != "" {
			t.Errorf("texts of %d bytes (-want +got):\n%.400s", n, d)
		}
	}
}

// More symbols than the table had room for, and references of one to three bytes.
func TestEncode2ManySymbols(t *testing.T) {
	all := testSeries2(6_000) // and more symbols than two bytes can refer to
	var points []point
	for i, s := range all {
		points = append(points, point{series: s, t: int64(i + 1), v: 1})
	}
	for i := range 9_000 {
		x := &pointAux{labels: labels.FromStrings(fmt.Sprint("n", i), fmt.Sprint("v", i))}
		points = append(points, point{series: all[len(all)-1], t: int64(i), kind: exemplarPoint, aux: x})
	}
	e := newEncoder2()
	for range 2 { // grown, and reused
		if d := cmp.Diff(message2(points), decode2(t, e.encode(points)), compareBits); d != "" {
			t.Fatalf("(-want +got):\n%.400s", d)
		}
		points = points[3_000:]
	}
}

// A table that has been used 2³² times does not take the slots of its first use for new.
func TestSymbolsTurnOver(t *testing.T) {
	s := newSymbols()
	s.turn = math.MaxUint32
	for range 3 {
		s.reset()
		for range 2 {
			for i, text := range []string{"", "a", "b"} {
				if got := s.ref(text); got != uint32(i) {
					t.Errorf("turn %d: reference of %q is %d, want %d", s.turn, text, got, i)
				}
			}
		}
	}
}

func TestEncode2AllocatesNothing(t *testing.T) {
	points := benchPoints2(2000, 1)
	e := newEncoder2()
	e.encode(points)
	if n := testing.AllocsPerRun(20, func() { e.encode(points) }); n > 0 {
		t.Errorf("encoding allocates %v times a batch, want 0", n)
	}
}

// What is gone from the log must not be kept alive by the encoder for longer than until its
// next request.
func TestEncode2ForgetsTexts(t *testing.T) {
	e := newEncoder2()
	e.encode(benchPoints2(100, 1))
	e.encode(nil)
	for _, text := range e.symbols.texts[:cap(e.symbols.texts)] {
		if text != "" {
			t.Fatalf("still refers to %q", text)
		}
	}
	for _, b := range e.before[:cap(e.before)] {
		if b.label != "" {
			t.Fatalf("still refers to %q", b.label)
		}
	}
}

// benchPoints2 is benchPoints with metadata and start timestamps.
func benchPoints2(n, run int) []point {
	c := newSeriesCache(labels.FromStrings("site", "fra1"), nil)
	c.moderns = map[metadata.Metadata]*modern{}
	points := benchPoints(n, run)
	var s *series
	for i := range points {
		if i%run == 0 {
			from := *points[i].series.from
			from.About = &wal.About{Meta: metadata.Metadata{Type: model.MetricTypeCounter, Help: "Bytes written to " + from.Labels.Get(model.MetricNameLabel) + " since the start."}}
			s = c.get(&from)
		}
		points[i].series = s
	}
	return points
}

// BenchmarkEncode2 is BenchmarkEncode for remote write 2.0, with metadata; and what the
// library makes of the same.
func BenchmarkEncode2(b *testing.B) {
	for _, run := range []int{1, 10} {
		points := benchPoints2(2000, run)
		b.Run(fmt.Sprintf("adjacent=%d", run), func(b *testing.B) {
			e := newEncoder2()
			b.ReportAllocs()
			for b.Loop() {
				e.encode(points)
			}
			perSample(b, len(points), len(e.compressed))
		})
	}
	points := benchPoints2(2000, 1)
	final := make([]labels.Labels, len(points))
	for i := range points {
		final[i] = points[i].series.labels()
	}
	b.Run("library", func(b *testing.B) {
		table := writev2.NewSymbolTable()
		req := writev2.Request{Timeseries: make([]writev2.TimeSeries, len(points))}
		var raw, out []byte
		b.ReportAllocs()
		for b.Loop() {
			table.Reset()
			for i, p := range points {
				ts := &req.Timeseries[i]
				ts.LabelsRefs = table.SymbolizeLabels(final[i], ts.LabelsRefs)
				ts.Samples = append(ts.Samples[:0], writev2.Sample{Value: p.v, Timestamp: p.t})
				ts.Metadata = writev2.Metadata{Type: writev2.Metadata_METRIC_TYPE_COUNTER, HelpRef: table.Symbolize(p.series.modern.help)}
			}
			req.Symbols = table.Symbols()
			raw, _ = req.OptimizedMarshal(raw)
			out = snappy.Encode(out[:cap(out)], raw)
		}
		perSample(b, len(points), len(out))
	})
}
