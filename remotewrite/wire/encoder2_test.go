package wire

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
)

// manySeries2 makes n series as manySeries does, some with metadata, some with names that
// only remote write 2.0 carries.
func manySeries2(n int) []*testSeries {
	e := NewForms(V2)
	types := []model.MetricType{model.MetricTypeCounter, model.MetricTypeGauge, model.MetricTypeHistogram, model.MetricTypeGaugeHistogram,
		model.MetricTypeSummary, model.MetricTypeInfo, model.MetricTypeStateset, model.MetricTypeUnknown}
	all := make([]*testSeries, n)
	for i := range all {
		ls, meta := hostLabels(i), metadata.Metadata{}
		switch i % 10 {
		case 0:
			ls = labels.FromStrings(model.MetricNameLabel, fmt.Sprintf("hw.temperature_%d", i), "hw.id", strings.Repeat("ä", i%200))
		case 1:
		default:
			meta = metadata.Metadata{Type: types[i%len(types)], Help: fmt.Sprintf("Bytes written, of kind %d.", i%40), Unit: []string{"", "bytes"}[i%2]}
		}
		all[i] = newTestSeries(e, ls, meta)
	}
	return all
}

// randomSamples2 makes samples with what only remote write 2.0 carries, too.
func randomSamples2(r *rand.Rand, all []*testSeries, n int) []sample {
	samples := randomSamples(r, all, n)
	for i := range samples {
		p := &samples[i]
		if p.kind == exemplar {
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
			p.h.Schema, p.h.CustomValues = histogram.CustomBucketsSchema, bounds
		case p.kind == floatHistogram:
			p.fh.Schema, p.fh.CustomValues = histogram.CustomBucketsSchema, bounds
		}
	}
	return samples
}

// decoded2 is a writev2.TimeSeries with its references resolved.
type decoded2 struct {
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

// message2 is what samples must decode to, made with the library's own types.
func message2(samples []sample) (all []decoded2) {
	for len(samples) > 0 {
		n, exemplars := sameSeries(samples)
		if exemplars == n {
			samples = samples[n:]
			continue
		}
		from := samples[0].series
		s := decoded2{Labels: from.from.String()}
		if s.Meta = from.meta; s.Meta.Type == "" {
			s.Meta.Type = model.MetricTypeUnknown
		}
		for _, p := range samples[:n] {
			switch p.kind {
			case float:
				s.Samples = append(s.Samples, writev2.Sample{Value: p.v, Timestamp: p.t, StartTimestamp: p.st})
			case exemplar:
				s.Exemplars = append(s.Exemplars, exemplar2{p.labels.String(), p.t, p.v})
			case intHistogram:
				s.Histograms = append(s.Histograms, writev2.FromIntHistogram(p.st, p.t, p.h))
			case floatHistogram:
				s.Histograms = append(s.Histograms, writev2.FromFloatHistogram(p.st, p.t, p.fh))
			}
		}
		all = append(all, s)
		samples = samples[n:]
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
func decode2(t testing.TB, body []byte) (all []decoded2) {
	t.Helper()
	req := decodeRequest2(t, body)
	b := labels.NewScratchBuilder(0)
	for _, ts := range req.Timeseries {
		ls, err := ts.ToLabels(&b, req.Symbols)
		if err != nil {
			t.Fatal(err)
		}
		s := decoded2{Labels: ls.String(), Samples: ts.Samples, Histograms: ts.Histograms}
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
	all := manySeries2(400)
	var e testEncoder
	for round := range 100 {
		samples := randomSamples2(r, all[:1+r.IntN(len(all))], r.IntN(60))
		if d := cmp.Diff(message2(samples), decode2(t, encode(&e, V2, samples)), compareBits); d != "" {
			t.Fatalf("seed %d, round %d (-want +got):\n%s", seed, round, d)
		}
	}
}

func FuzzEncode2(f *testing.F) {
	f.Add(uint64(1), uint16(3))
	f.Add(uint64(2), uint16(200))
	all := manySeries2(50)
	f.Fuzz(func(t *testing.T, seed uint64, n uint16) {
		samples := randomSamples2(rand.New(rand.NewPCG(seed, 0)), all, int(n%512))
		if d := cmp.Diff(message2(samples), decode2(t, encode(new(testEncoder), V2, samples)), compareBits); d != "" {
			t.Fatalf("(-want +got):\n%s", d)
		}
	})
}

// Texts of any length keep the length prefixes right: of 1, 2, 3 and 4 bytes.
func TestEncode2Lengths(t *testing.T) {
	for _, n := range []int{1, 90, 97, 98, 99, 100, 125, 126, 127, 128, 129, 16000, 16383, 16384, 16400, 1 << 21, 1<<21 + 5} {
		long := strings.Repeat("x", n)
		s := newTestSeries(NewForms(V2), labels.FromStrings(model.MetricNameLabel, "m", "a"+long, long), metadata.Metadata{Help: long})
		got := decode2(t, encode(new(testEncoder), V2, []sample{{series: s, t: 1, v: 2}}))
		want := []decoded2{{
			Labels: s.from.String(), Samples: []writev2.Sample{{Value: 2, Timestamp: 1}},
			Meta: metadata.Metadata{Type: model.MetricTypeUnknown, Help: long},
		}}
		if d := cmp.Diff(want, got, compareBits); d != "" {
			t.Errorf("texts of %d bytes (-want +got):\n%.400s", n, d)
		}
	}
}

// More symbols than the table had room for, and references of one to three bytes.
func TestEncode2ManySymbols(t *testing.T) {
	all := manySeries2(6_000) // and more symbols than two bytes can refer to
	var samples []sample
	for i, s := range all {
		samples = append(samples, sample{series: s, t: int64(i + 1), v: 1})
	}
	for i := range 9_000 {
		ls := labels.FromStrings(fmt.Sprint("n", i), fmt.Sprint("v", i))
		samples = append(samples, sample{series: all[len(all)-1], t: int64(i), kind: exemplar, labels: ls})
	}
	var e testEncoder
	for range 2 { // grown, and reused
		if d := cmp.Diff(message2(samples), decode2(t, encode(&e, V2, samples)), compareBits); d != "" {
			t.Fatalf("(-want +got):\n%.400s", d)
		}
		samples = samples[3_000:]
	}
}

// A table that was reset 2³² times does not take the slots of its first use for present ones.
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
	samples := benchSamples2(2000, 1)
	var e testEncoder
	encode(&e, V2, samples)
	if n := testing.AllocsPerRun(20, func() { encode(&e, V2, samples) }); n > 0 {
		t.Errorf("encoding allocates %v times a batch, want 0", n)
	}
}

// The encoder must not keep texts of removed series in memory beyond its
// next request.
func TestEncode2ForgetsTexts(t *testing.T) {
	var e testEncoder
	encode(&e, V2, benchSamples2(100, 1))
	encode(&e, V2, nil)
	for _, text := range e.refs.symbols.texts[:cap(e.refs.symbols.texts)] {
		if text != "" {
			t.Fatalf("still refers to %q", text)
		}
	}
	for _, b := range e.refs.before[:cap(e.refs.before)] {
		if b.label != (labels.Label{}) {
			t.Fatalf("still refers to %q", b.label)
		}
	}
}

// benchSamples2 is benchSamples with metadata and start timestamps.
func benchSamples2(n, run int) []sample {
	e := NewForms(V2)
	samples := benchSamples(n, run)
	var s *testSeries
	for i := range samples {
		if i%run == 0 {
			from := samples[i].series.from
			s = newTestSeries(e, from, metadata.Metadata{Type: model.MetricTypeCounter, Help: "Bytes written to " + from.Get(model.MetricNameLabel) + " since the start."})
		}
		samples[i].series = s
	}
	return samples
}

// BenchmarkEncode2 is BenchmarkEncode for remote write 2.0, with metadata; and what the
// library makes of the same.
func BenchmarkEncode2(b *testing.B) {
	for _, run := range []int{1, 10} {
		samples := benchSamples2(2000, run)
		b.Run(fmt.Sprintf("adjacent=%d", run), func(b *testing.B) {
			var e testEncoder
			b.ReportAllocs()
			for b.Loop() {
				encode(&e, V2, samples)
			}
			perSample(b, len(samples), len(e.compressor.packed))
		})
	}
	samples := benchSamples2(2000, 1)
	final := make([]labels.Labels, len(samples))
	for i := range samples {
		final[i] = samples[i].series.labels
	}
	b.Run("library", func(b *testing.B) {
		table := writev2.NewSymbolTable()
		req := writev2.Request{Timeseries: make([]writev2.TimeSeries, len(samples))}
		var raw, out []byte
		b.ReportAllocs()
		for b.Loop() {
			table.Reset()
			for i, p := range samples {
				ts := &req.Timeseries[i]
				ts.LabelsRefs = table.SymbolizeLabels(final[i], ts.LabelsRefs)
				ts.Samples = append(ts.Samples[:0], writev2.Sample{Value: p.v, Timestamp: p.t})
				ts.Metadata = writev2.Metadata{Type: writev2.Metadata_METRIC_TYPE_COUNTER, HelpRef: table.Symbolize(p.series.meta.Help)}
			}
			req.Symbols = table.Symbols()
			raw, _ = req.OptimizedMarshal(raw)
			out = snappy.Encode(out[:cap(out)], raw)
		}
		perSample(b, len(samples), len(out))
	})
}
