package wal

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"

	"hwsagent/wal/internal/segment"
)

// nextEntry is the next entry of r.
func nextEntry(t *testing.T, r *Reader) *Entry {
	t.Helper()
	e, err := r.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// openReader opens a reader that is closed with the test.
func openReader(t *testing.T, l *Log, name string, o ReaderOptions) *Reader {
	t.Helper()
	r, err := l.Reader(name, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestAppendOrder(t *testing.T) {
	type sample struct {
		t      int64
		v      float64
		h      *histogram.Histogram
		fh     *histogram.FloatHistogram
		reject bool
	}
	nan := math.Float64frombits(value.StaleNaN)
	h1, h2 := tsdbutil.GenerateTestHistogram(1), tsdbutil.GenerateTestHistogram(2)
	f1, f2 := tsdbutil.GenerateTestFloatHistogram(1), tsdbutil.GenerateTestFloatHistogram(2)
	for _, tc := range []struct {
		name   string
		first  sample
		second sample
		err    error
		logged int // of the two
	}{
		{"newer", sample{t: 1, v: 1}, sample{t: 2, v: 1}, nil, 2},
		{"same", sample{t: 1, v: 1}, sample{t: 1, v: 1}, nil, 1},
		{"same, reject", sample{t: 1, v: 1}, sample{t: 1, v: 1, reject: true}, nil, 1},
		{"same time, other value", sample{t: 1, v: 1}, sample{t: 1, v: 2}, storage.ErrDuplicateSampleForTimestamp, 1},
		{"older", sample{t: 2, v: 1}, sample{t: 1, v: 1}, nil, 2},
		{"older, reject", sample{t: 2, v: 1}, sample{t: 1, v: 1, reject: true}, storage.ErrOutOfOrderSample, 1},
		{"stale twice", sample{t: 1, v: nan}, sample{t: 1, v: nan}, nil, 1},
		{"stale, then a NaN", sample{t: 1, v: nan}, sample{t: 1, v: math.NaN()}, storage.ErrDuplicateSampleForTimestamp, 1},
		{"same histogram", sample{t: 1, h: h1}, sample{t: 1, h: h1.Copy()}, nil, 1},
		{"other histogram", sample{t: 1, h: h1}, sample{t: 1, h: h2}, storage.ErrDuplicateSampleForTimestamp, 1},
		{"same float histogram", sample{t: 1, fh: f1}, sample{t: 1, fh: f1.Copy()}, nil, 1},
		{"other float histogram", sample{t: 1, fh: f1}, sample{t: 1, fh: f2}, storage.ErrDuplicateSampleForTimestamp, 1},
		{"histogram, then float", sample{t: 1, h: h1}, sample{t: 1, v: 1}, storage.ErrDuplicateSampleForTimestamp, 1},
		{"float, then histogram", sample{t: 1, v: 1}, sample{t: 1, fh: f1}, storage.ErrDuplicateSampleForTimestamp, 1},
	} {
		for _, how := range []string{"one batch", "two batches", "two batches at once", "rolled back"} {
			t.Run(tc.name+"/"+how, func(t *testing.T) {
				l := openLog(t, Options{})
				add := func(app storage.AppenderV2, s sample) error {
					ref, err := app.Append(0, sampleOf(1), 0, s.t, s.v, s.h, s.fh, storage.AppendV2Options{RejectOutOfOrder: s.reject})
					if err == nil && ref == 0 {
						t.Error("no reference")
					}
					return err
				}
				finish := func(err error) {
					if err != nil {
						t.Error(err)
					}
				}
				want, logged := tc.err, tc.logged
				first := l.AppenderV2(t.Context())
				finish(add(first, tc.first))
				second := first
				switch how {
				case "two batches":
					finish(first.Commit())
					second = l.AppenderV2(t.Context())
				case "two batches at once":
					// Neither is committed when the other looks.
					second = l.AppenderV2(t.Context())
					want, logged = nil, 2
				case "rolled back":
					finish(first.Rollback())
					second = l.AppenderV2(t.Context())
					want, logged = nil, 1
				}
				if err := add(second, tc.second); !errors.Is(err, want) {
					t.Errorf("error = %v, want %v", err, want)
				}
				if how == "two batches at once" {
					finish(first.Commit())
				}
				finish(second.Commit())
				if got := l.head().Total; got != uint64(logged) {
					t.Errorf("%d samples are logged, want %d", got, logged)
				}
				if err := second.Commit(); err == nil {
					t.Error("an appender commits twice")
				}
			})
		}
	}
}

func TestReferences(t *testing.T) {
	l := openLog(t, Options{})
	app := l.AppenderV2(t.Context())
	ref, err := app.Append(0, sampleOf(1), 0, 1, 1, nil, nil, storage.AppendV2Options{})
	if err != nil || ref == 0 {
		t.Fatalf("ref %d, %v", ref, err)
	}
	// The order of labels and empty ones make no other series; a reference needs none.
	again := labels.FromStrings("instance", "localhost", "__name__", "metric_1", "job", "test", "empty", "")
	for _, ls := range []labels.Labels{sampleOf(1), again, labels.EmptyLabels()} {
		r := storage.SeriesRef(0)
		if ls.IsEmpty() {
			r = ref
		}
		if got, err := app.Append(r, ls, 0, 2, 2, nil, nil, storage.AppendV2Options{}); got != ref || err != nil {
			t.Errorf("ref = %d, %v, want %d", got, err, ref)
		}
	}
	if _, err := app.Append(ref+99, labels.EmptyLabels(), 0, 2, 2, nil, nil, storage.AppendV2Options{}); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("an unknown reference without labels: %v", err)
	}
	if _, err := app.Append(0, labels.New(labels.Label{Name: "a", Value: "1"}, labels.Label{Name: "a", Value: "2"}), 0, 2, 2, nil, nil, storage.AppendV2Options{}); err == nil {
		t.Error("a label is taken twice")
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
	l.series.evict(3600)
	if n := l.series.size(); n != 1 {
		t.Errorf("%d series after an hour, want 1", n)
	}
	l.series.evict(3600 + sweepEvery)
	if n := l.series.size(); n != 0 {
		t.Errorf("%d series after more than an hour and a sweep, want 0", n)
	}
	app = l.AppenderV2(t.Context())
	back, err := app.Append(ref, sampleOf(1), 0, 3, 3, nil, nil, storage.AppendV2Options{})
	if err != nil || back == 0 || back == ref {
		t.Errorf("ref = %d, %v: want a new one", back, err)
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
}

// TestEveryKindSurvives appends each kind of sample, and reads it back.
func TestEveryKindSurvives(t *testing.T) {
	l := openLog(t, Options{})
	r := openReader(t, l, "a", ReaderOptions{})
	app := l.AppenderV2(t.Context())
	add := func(name string, st, ts int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AppendV2Options) {
		t.Helper()
		if _, err := app.Append(0, labels.FromStrings("__name__", name), st, ts, v, h, fh, o); err != nil {
			t.Fatal(err)
		}
	}
	h, fh := tsdbutil.GenerateTestHistogram(3), tsdbutil.GenerateTestFloatHistogram(4)
	ch, cfh := tsdbutil.GenerateTestCustomBucketsHistogram(5), tsdbutil.GenerateTestCustomBucketsFloatHistogram(6)
	meta := metadata.Metadata{Type: model.MetricTypeCounter, Unit: "seconds", Help: "How long."}
	e := exemplar.Exemplar{Labels: labels.FromStrings("trace", "x"), Value: 7, Ts: 99, HasTs: true}
	add("c_total", 50, 100, 1.5, nil, nil, storage.AppendV2Options{Metadata: meta, MetricFamilyName: "c", Exemplars: []exemplar.Exemplar{e}})
	add("stale", 0, 101, math.Float64frombits(value.StaleNaN), nil, nil, storage.AppendV2Options{MetricFamilyName: "stale"})
	add("h", 51, 102, 0, h, nil, storage.AppendV2Options{})
	add("fh", 52, 103, 0, nil, fh, storage.AppendV2Options{})
	add("ch", 0, 104, 0, ch, nil, storage.AppendV2Options{})
	add("cfh", 0, 105, 0, nil, cfh, storage.AppendV2Options{})
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}

	got := nextEntry(t, r)
	if got.MinT != 100 || got.MaxT != 105 || got.Count() != 6 || got.End.Total != 6 {
		t.Errorf("entry = %+v", got)
	}
	c, stale := got.Samples[0], got.Samples[1]
	if c.ST != 50 || c.T != 100 || c.V != 1.5 || c.Series.Meta() != meta || c.Series.Family() != "c" || c.Series.Labels().Get("__name__") != "c_total" {
		t.Errorf("sample = %+v of %+v", c, c.Series)
	}
	if stale.ST != 0 || math.Float64bits(stale.V) != value.StaleNaN || stale.Series.Family() != "" {
		t.Errorf("stale marker = %+v of %+v", stale, stale.Series)
	}
	if x := got.Exemplars; len(x) != 1 || x[0].V != 7 || x[0].T != 99 || x[0].Labels.Get("trace") != "x" || x[0].Series != c.Series {
		t.Errorf("exemplars = %+v", x)
	}
	want := map[string]any{"h": h, "fh": fh, "ch": ch, "cfh": cfh}
	for _, s := range got.Histograms {
		name := s.Series.Labels().Get("__name__")
		var diff string
		if s.H != nil {
			diff = cmp.Diff(want[name], any(s.H))
		} else {
			diff = cmp.Diff(want[name], any(s.FH))
		}
		if diff != "" {
			t.Errorf("%s differs: %s", name, diff)
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("not read: %v", want)
	}

	// Metadata that changes is announced again.
	meta.Help = "How long, exactly."
	app = l.AppenderV2(t.Context())
	add("c_total", 50, 200, 2, nil, nil, storage.AppendV2Options{Metadata: meta, MetricFamilyName: "c"})
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
	if s := nextEntry(t, r).Samples[0].Series; s.Meta() != meta {
		t.Errorf("metadata = %+v, want %+v", s.Meta(), meta)
	}
}

// TestLargeCommit splits what is too long for one record.
func TestLargeCommit(t *testing.T) {
	l := openLog(t, Options{SegmentBytes: 64 << 10})
	r := openReader(t, l, "a", ReaderOptions{})
	const n = 150_000
	if err := commitFloats(l, n, 1, 1); err != nil {
		t.Fatal(err)
	}
	if err := commitFloats(l, 1, 2, 2); err != nil {
		t.Fatal(err)
	}
	if got := len(nextEntry(t, r).Samples); got != n {
		t.Errorf("%d samples, want %d", got, n)
	}
	if got := nextEntry(t, r).Samples[0].V; got != 2 {
		t.Errorf("value %v, want 2", got)
	}
}

// TestHugeHistogram refuses a histogram that no reader would take for anything but
// damage, and leaves such exemplars out.
func TestHugeHistogram(t *testing.T) {
	l := openLog(t, Options{})
	r := openReader(t, l, "a", ReaderOptions{})
	app := l.AppenderV2(t.Context())
	const buckets = segment.MaxRecord / 8
	h := &histogram.Histogram{Count: buckets, PositiveSpans: []histogram.Span{{Length: buckets}}, PositiveBuckets: make([]int64, buckets)}
	h.PositiveBuckets[0] = 1
	if _, err := app.Append(0, sampleOf(1), 0, 1, 0, h, nil, storage.AppendV2Options{}); err == nil {
		t.Error("a histogram of", buckets, "buckets is taken")
	}
	if _, err := app.Append(0, sampleOf(1), 0, 1, 0, nil, h.ToFloat(nil), storage.AppendV2Options{}); err == nil {
		t.Error("a float histogram of", buckets, "buckets is taken")
	}
	long := exemplar.Exemplar{Labels: labels.FromStrings("a", strings.Repeat("x", maxExemplarBytes+1)), Value: 1}
	short := exemplar.Exemplar{Labels: labels.FromStrings("a", "b"), Value: 2}
	if _, err := app.Append(0, sampleOf(1), 0, 1, 1, nil, nil, storage.AppendV2Options{Exemplars: []exemplar.Exemplar{long, short}}); err != nil {
		t.Error(err)
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
	if e := nextEntry(t, r); len(e.Samples) != 1 || len(e.Exemplars) != 1 || e.Exemplars[0].V != 2 {
		t.Errorf("entry %+v", e)
	}
}

// An exemplar whose sample came before is logged by itself, and counts as no sample.
func TestAppendExemplarAlone(t *testing.T) {
	l := openLog(t, Options{Dir: t.TempDir()})
	r := openReader(t, l, "r", ReaderOptions{})
	app := l.AppenderV2(t.Context())
	a, ok := app.(storage.ExemplarAppender)
	if !ok {
		t.Fatal("an appender of the log takes no exemplars alone")
	}
	ls := labels.FromStrings("__name__", "x")
	for _, e := range []exemplar.Exemplar{{Value: 1}, {Value: 1, Ts: 1, Labels: labels.FromStrings("a", strings.Repeat("x", maxExemplarBytes))}} {
		if _, err := a.AppendExemplar(0, ls, e); err == nil {
			t.Errorf("%v is taken", e)
		}
	}
	if _, err := a.AppendExemplar(0, labels.EmptyLabels(), exemplar.Exemplar{Value: 1, Ts: 1}); !errors.Is(err, errNoLabels) {
		t.Errorf("of a series without labels: %v", err)
	}
	if _, err := a.AppendExemplar(0, ls, exemplar.Exemplar{Labels: labels.FromStrings("trace", "t"), Value: 7, Ts: 99}); err != nil {
		t.Fatal(err)
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
	e := nextEntry(t, r)
	if len(e.Exemplars) != 1 || e.Exemplars[0].T != 99 || e.Exemplars[0].Series.Labels().String() != ls.String() || e.Count() != 0 {
		t.Errorf("got %+v", e)
	}
}
