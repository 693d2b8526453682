package wal

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/record"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"

	"hwsagent/wal/internal/segment"
	"hwsagent/wal/internal/segmenttest"
)

func randomHistogram(rng *rand.Rand, custom bool) *histogram.Histogram {
	h := &histogram.Histogram{
		CounterResetHint: histogram.CounterResetHint(rng.IntN(4)),
		Schema:           int32(rng.IntN(13) - 4),
		ZeroThreshold:    1e-9, ZeroCount: rng.Uint64N(100), Count: rng.Uint64(), Sum: rng.NormFloat64(),
	}
	n := rng.IntN(6)
	if n > 0 {
		h.PositiveSpans = []histogram.Span{{Offset: int32(rng.IntN(20) - 10), Length: uint32(n)}}
	}
	for range n {
		h.PositiveBuckets = append(h.PositiveBuckets, int64(rng.IntN(2000)-1000))
	}
	if custom {
		h.Schema = histogram.CustomBucketsSchema
		h.ZeroThreshold, h.ZeroCount = 0, 0
		for i := range n {
			h.CustomValues = append(h.CustomValues, float64(i))
		}
		return h
	}
	if m := rng.IntN(4); m > 0 {
		h.NegativeSpans = []histogram.Span{{Offset: 1, Length: 1}, {Offset: 3, Length: uint32(m)}}
		for range m + 1 {
			h.NegativeBuckets = append(h.NegativeBuckets, int64(rng.IntN(50)))
		}
	}
	return h
}

func randomStart(rng *rand.Rand, last int64) int64 {
	switch rng.IntN(4) {
	case 0:
		return 0
	case 1:
		return last
	}
	return rng.Int64N(1 << 40)
}

var exactFloats = cmp.Comparer(func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) })

// What is decoded is what the stock encoder was given, in every record type: start
// times, stale markers and every kind of histogram survive to the bit.
func TestDecodeRoundTrip(t *testing.T) {
	const seed = 21
	t.Logf("seed %d", seed)
	for round := range 200 {
		rng := rand.New(rand.NewPCG(seed, uint64(round)))
		enc := segmenttest.Encoder
		d := newEntryDecoder(newSeriesMap())
		const series = 20
		var announce []record.RefSeries
		base := rng.Uint64()
		for i := range series {
			announce = append(announce, record.RefSeries{Ref: chunks.HeadSeriesRef(base + uint64(i*3)), Labels: segmenttest.Labels(i)})
		}
		if err := d.decode(enc.Series(announce, nil)); err != nil {
			t.Fatal(err)
		}
		var (
			samples    []record.RefSample
			ints       []record.RefHistogramSample
			floats     []record.RefFloatHistogramSample
			exemplars  []record.RefExemplar
			want, got  []string
			last, when = int64(0), rng.Int64N(1 << 41)
		)
		show := func(what string, ref chunks.HeadSeriesRef, st, t int64, v any) string {
			return fmt.Sprintf("%s %s %d %d %v", what, segmenttest.Labels(int(uint64(ref)-base)/3), st, t, v)
		}
		pick := func() chunks.HeadSeriesRef { return announce[rng.IntN(series)].Ref }
		start := func() int64 {
			last = randomStart(rng, last)
			return last
		}
		for range rng.IntN(50) {
			v := rng.NormFloat64()
			if rng.IntN(5) == 0 {
				v = segmenttest.StaleNaN
			}
			s := record.RefSample{Ref: pick(), ST: start(), T: when + rng.Int64N(1e6) - 5e5, V: v}
			samples = append(samples, s)
			want = append(want, show("float", s.Ref, s.ST, s.T, math.Float64bits(s.V)))
		}
		for range rng.IntN(8) {
			h := record.RefHistogramSample{Ref: pick(), ST: start(), T: when + rng.Int64N(1e6), H: randomHistogram(rng, rng.IntN(3) == 0)}
			ints = append(ints, h)
		}
		for range rng.IntN(8) {
			h := record.RefFloatHistogramSample{Ref: pick(), ST: start(), T: when + rng.Int64N(1e6), FH: randomHistogram(rng, rng.IntN(3) == 0).ToFloat(nil)}
			floats = append(floats, h)
		}
		for range rng.IntN(4) {
			x := record.RefExemplar{Ref: pick(), T: when, V: rng.NormFloat64(), Labels: labels.FromStrings("trace_id", fmt.Sprint(rng.Uint64()))}
			exemplars = append(exemplars, x)
			want = append(want, show("exemplar", x.Ref, 0, x.T, fmt.Sprint(math.Float64bits(x.V), x.Labels)))
		}

		recs := [][]byte{enc.Samples(samples, nil)}
		rec, rest := enc.HistogramSamples(ints, nil)
		frec, frest := enc.FloatHistogramSamples(floats, nil)
		if len(rest)+len(frest) > 0 {
			t.Fatal("the encoder has left histograms out")
		}
		recs = append(recs, rec, frec, enc.Exemplars(exemplars, nil))
		for range 2 { // the second time in used memory
			d.reset()
			for _, rec := range recs {
				if len(rec) == 0 {
					continue
				}
				if err := d.decode(rec); err != nil {
					t.Fatalf("round %d: record of type %d: %v", round, rec[0], err)
				}
			}
			got = got[:0]
			e := &d.to.entry
			for _, s := range e.Samples {
				got = append(got, fmt.Sprintf("float %s %d %d %v", s.Series.Labels(), s.ST, s.T, math.Float64bits(s.V)))
			}
			for _, x := range e.Exemplars {
				got = append(got, fmt.Sprintf("exemplar %s 0 %d %v", x.Series.Labels(), x.T, fmt.Sprint(math.Float64bits(x.V), x.Labels)))
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("round %d: %s", round, diff)
			}
			compareHistograms(t, e.Histograms, ints, floats, func(ref chunks.HeadSeriesRef) labels.Labels { return segmenttest.Labels(int(uint64(ref)-base) / 3) })
		}
	}
}

// compareHistograms compares the decoded ones, custom buckets after others, with
// those that were encoded.
func compareHistograms(t *testing.T, got []Histogram, ints []record.RefHistogramSample, floats []record.RefFloatHistogramSample, lookup func(chunks.HeadSeriesRef) labels.Labels) {
	t.Helper()
	if len(got) != len(ints)+len(floats) {
		t.Fatalf("%d histograms, want %d", len(got), len(ints)+len(floats))
	}
	type flat struct {
		Labels string
		ST, T  int64
		H      *histogram.Histogram
		FH     *histogram.FloatHistogram
	}
	var want, have []flat
	for _, h := range ints {
		want = append(want, flat{lookup(h.Ref).String(), h.ST, h.T, h.H, nil})
	}
	for _, h := range floats {
		want = append(want, flat{lookup(h.Ref).String(), h.ST, h.T, nil, h.FH})
	}
	for _, h := range got {
		have = append(have, flat{h.Series.Labels().String(), h.ST, h.T, h.H, h.FH})
	}
	byTime := cmpopts.SortSlices(func(a, b flat) bool { return a.T < b.T || a.T == b.T && a.Labels < b.Labels })
	if diff := cmp.Diff(want, have, byTime, exactFloats, cmpopts.EquateEmpty()); diff != "" {
		t.Fatal(diff)
	}
}

// A resolution that this build cannot handle is reduced; an unknown schema is left
// out; neither disturbs what follows.
func TestDecodeForeignSchemas(t *testing.T) {
	h := func(schema int32) *histogram.Histogram {
		return &histogram.Histogram{
			Schema: schema, Count: 3, Sum: 1, ZeroThreshold: 0.1,
			PositiveSpans: []histogram.Span{{Offset: 0, Length: 2}}, PositiveBuckets: []int64{1, 1},
		}
	}
	rec, _ := segmenttest.Encoder.HistogramSamples([]record.RefHistogramSample{
		{Ref: 1, T: 1, H: h(10)}, {Ref: 1, T: 2, H: h(100)}, {Ref: 1, T: 3, H: h(3)},
	}, nil)
	d := newEntryDecoder(newSeriesMap())
	if err := d.decode(segmenttest.Series(1)); err != nil {
		t.Fatal(err)
	}
	if err := d.decode(rec); err != nil {
		t.Fatal(err)
	}
	if n := len(d.to.entry.Histograms); n != 2 {
		t.Fatalf("%d histograms, want 2", n)
	}
	if a, b := d.to.entry.Histograms[0], d.to.entry.Histograms[1]; a.H.Schema != 8 || b.T != 3 || b.H.Schema != 3 {
		t.Errorf("got schemas %d and %d", a.H.Schema, b.H.Schema)
	}
}

func metadataRecord(ref int, m metadata.Metadata) []byte {
	return segmenttest.Encoder.Metadata([]record.RefMetadata{{
		Ref: chunks.HeadSeriesRef(ref), Type: record.GetMetricType(m.Type), Unit: m.Unit, Help: m.Help,
	}}, nil)
}

// Metadata and family belong to the series; a change of them makes another *Series in
// the same slot, since the old one may be in use.
func TestMetadataAndFamily(t *testing.T) {
	counter := metadata.Metadata{Type: model.MetricTypeCounter, Unit: "bytes", Help: "Bytes sent."}
	gauge := metadata.Metadata{Type: model.MetricTypeGauge, Help: "Something else."}
	a := segmenttest.New(0, ID{9}, 0, 0)
	a.Commit(1, 1, 1, segmenttest.Series(7), metadataRecord(7, counter), segment.AppendFamilies(nil, []segment.Family{{Ref: 7, Name: "sent"}}), segmenttest.Samples(1, 7))
	a.Commit(1, 2, 2, metadataRecord(7, counter), segmenttest.Samples(2, 7))
	a.Commit(1, 3, 3, metadataRecord(7, gauge), segmenttest.Samples(3, 7))
	b := segmenttest.New(1, ID{9}, 3, 3)
	b.Commit(1, 4, 4, segmenttest.Series(7), metadataRecord(7, gauge), segmenttest.Samples(4, 7))

	c := newSilentCursor(newFakeLog(a, b))
	defer c.close()
	var series []*Series
	for range 4 {
		e, err := c.next(c.tail.head())
		if err != nil || e == nil {
			t.Fatal(e, err)
		}
		series = append(series, e.Samples[0].Series)
	}
	if series[0] != series[1] || series[1] == series[2] || series[2] != series[3] {
		t.Errorf("identities: %p %p %p %p", series[0], series[1], series[2], series[3])
	}
	if series[0].Meta() != counter || series[0].Family() != "sent" {
		t.Errorf("first: %+v", series[0])
	}
	if series[2].Meta() != gauge || series[2].Family() != "sent" {
		t.Errorf("after the change: %+v", series[2])
	}
}

// Series that no segment mentions any more are forgotten, and their slots are used
// again; those in use keep their identity.
func TestIdleSeriesAreForgotten(t *testing.T) {
	var segments []*segmenttest.Builder
	var number, total uint64
	const per = 1000
	for n := range 20 {
		s := segmenttest.New(n, ID{9}, number, total)
		refs := append([]int{0}, segmenttest.Refs(1+n*per, 1+(n+1)*per)...)
		s.Commit(uint64(len(refs)), 1, 1, segmenttest.Series(refs...), segmenttest.Samples(1, refs...))
		number, total = s.Next.Number, s.Next.Total
		segments = append(segments, s)
	}
	c := newSilentCursor(newFakeLog(segments...))
	defer c.close()
	var stays *Series
	for range segments {
		e, err := c.next(c.tail.head())
		if err != nil || e == nil || e.Count() != per+1 {
			t.Fatal(e, err)
		}
		if stays == nil {
			stays = e.Samples[0].Series
		}
		if e.Samples[0].Series != stays {
			t.Fatal("a series in use changed its identity")
		}
		slots := map[int]bool{}
		for _, s := range e.Samples {
			if s.Series.Slot() >= (idleSegments+2)*per+1 || slots[s.Series.Slot()] {
				t.Fatalf("slot %d is not dense or not unique", s.Series.Slot())
			}
			slots[s.Series.Slot()] = true
		}
	}
	if n := c.tail.allSeries().held(); n > (idleSegments+1)*per+1 {
		t.Errorf("%d series are kept", n)
	}
}

// Records that stop short of their fields are refused, wherever they stop, and no more
// comes of them than of their beginning.
func TestShortRecords(t *testing.T) {
	var hs []record.RefHistogramSample
	for i := range 3 {
		hs = append(hs, record.RefHistogramSample{Ref: 1, T: int64(i), ST: int64(i * i), H: tsdbutil.GenerateTestHistogram(int64(i))})
	}
	whole, _ := segmenttest.Encoder.HistogramSamples(hs, nil)
	refused := 0
	for size := 1; size < len(whole); size++ {
		d := newEntryDecoder(newSeriesMap())
		if err := d.decode(segmenttest.Encoder.Series([]record.RefSeries{{Ref: chunks.HeadSeriesRef(1), Labels: segmenttest.Labels(1)}}, nil)); err != nil {
			t.Fatal(err)
		}
		if err := d.decode(whole[:size]); err != nil {
			refused++
		}
		if n := len(d.to.entry.Histograms); n > 2 {
			t.Errorf("%d histograms in %d of %d bytes", n, size, len(whole))
		}
	}
	if refused < len(whole)-5 { // where one ends, and where nothing begins
		t.Errorf("%d of %d beginnings are refused", refused, len(whole))
	}

	table := newEntryDecoder(newSeriesMap()).series
	for what, encoded := range map[string][]byte{"no count": {}, "no name": {1}, "too much": {0, 0}} {
		if table.announce(1, encoded) {
			t.Errorf("labels with %s are taken: %s", what, table.lookup(1).Labels())
		}
	}
}
