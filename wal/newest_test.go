package wal

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
)

// TestRememberKeepsIdleSeries: a series that comes every four hours is there in between, as long as that is asked for.
func TestRememberKeepsIdleSeries(t *testing.T) {
	l := openLog(t, Options{})
	ls := labels.FromStrings("__name__", "x")
	app := l.AppenderV2(t.Context())
	if _, err := app.Append(0, ls, 0, 1, 1, nil, nil, storage.AppendV2Options{}); err != nil {
		t.Fatal(err)
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
	const hour = 3600
	l.Remember(12 * time.Hour)
	if l.series.evict(11 * hour); l.Ref(ls) == 0 {
		t.Error("the series is gone")
	}
	l.Remember(time.Minute)
	if l.series.evict(12 * hour); l.Ref(ls) != 0 {
		t.Error("the series is there after it is asked for no more")
	}
}

// TestBuffersOfARecordAreSmall: a commit that announces many series leaves no large buffer of a record behind.
func TestBuffersOfARecordAreSmall(t *testing.T) {
	l := openLog(t, Options{})
	app := l.AppenderV2(t.Context())
	for i := range 10_000 {
		if _, err := app.Append(0, labels.FromStrings("__name__", "x", "instance", strings.Repeat("host", 20), "n", strconv.Itoa(i)), 0, 1, 1, nil, nil, storage.AppendV2Options{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
	if n := cap(l.writer.encoder.rec); n > 3*(64<<10) {
		t.Errorf("%d bytes are kept, want at most 192 KiB", n)
	}
}

// TestNewestIsTheNewestCommitted: the log shows of each series what was committed last by its time, of whatever kind, and nothing
// of a series that it has forgotten.
func TestNewestIsTheNewestCommitted(t *testing.T) {
	l := openLog(t, Options{})
	ls := labels.FromStrings("__name__", "x", "empty", "")
	if ref := l.Ref(ls); ref != 0 {
		t.Fatalf("reference %d of a series that is not there", ref)
	}
	o := storage.AppendV2Options{MetricFamilyName: "fam", Metadata: metadata.Metadata{Type: model.MetricTypeGauge, Help: "X."}}
	h := &histogram.Histogram{Count: 3, ZeroCount: 3}
	fh := &histogram.FloatHistogram{Count: 4, ZeroCount: 4}
	var ref storage.SeriesRef
	for _, c := range []struct {
		t      int64
		v      float64
		h      *histogram.Histogram
		fh     *histogram.FloatHistogram
		commit bool
		want   [3]float64 // value, count of the histogram, of the float histogram
	}{
		{t: 1, v: 1, want: [3]float64{-1}},
		{t: 2, v: 2, commit: true, want: [3]float64{2}},
		{t: 3, h: h, commit: true, want: [3]float64{0, 3}},
		{t: 4, fh: fh, commit: true, want: [3]float64{0, 0, 4}},
		{t: 1, v: 9, commit: true, want: [3]float64{0, 0, 4}},
		{t: 5, v: 5, want: [3]float64{0, 0, 4}},
		{t: 6, v: 6, commit: true, want: [3]float64{6}},
		{t: 7, v: math.Float64frombits(value.StaleNaN), commit: true, want: [3]float64{math.NaN()}},
	} {
		app := l.AppenderV2(t.Context())
		got, err := app.Append(0, ls, 0, c.t, c.v, c.h, c.fh, o)
		if err != nil {
			t.Fatal(err)
		}
		ref = got
		end := app.Rollback
		if c.commit {
			end = app.Commit
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if got := l.Ref(ls); got != ref {
			t.Errorf("reference %d, want %d", got, ref)
		}
		newest, _, v, h, fh, said, ok := l.Newest(ref)
		if !ok {
			if c.want[0] != -1 || newest.String() != `{__name__="x"}` {
				t.Errorf("time %d: nothing is newest of %s", c.t, newest)
			}
			continue
		}
		is := [3]float64{v}
		if h != nil {
			is[1] = float64(h.Count)
		}
		if fh != nil {
			is[2] = fh.Count
		}
		if d := cmp.Diff(c.want, is, cmp.Comparer(func(a, b float64) bool { return a == b || a != a && b != b })); d != "" {
			t.Errorf("time %d (-want +got):\n%s", c.t, d)
		}
		if newest.String() != `{__name__="x"}` || said.MetricFamilyName != "fam" || said.Metadata != o.Metadata {
			t.Errorf("%s, %+v", newest, said)
		}
	}
	l.series.evict(int64(seriesStale.Seconds()) + sweepEvery + 10)
	if newest, _, _, _, _, _, ok := l.Newest(ref); ok || !newest.IsEmpty() || l.Ref(ls) != 0 {
		t.Error("what the log has forgotten is there")
	}
}

// TestNewestHasTheLastDescription: a sample with a family and without metadata ends the metadata of its series; a sample without
// either keeps it.
func TestNewestHasTheLastDescription(t *testing.T) {
	l := openLog(t, Options{})
	ls := labels.FromStrings("__name__", "x")
	gauge := metadata.Metadata{Type: model.MetricTypeGauge, Help: "X."}
	var ref storage.SeriesRef
	for i, c := range []struct{ given, want storage.AppendV2Options }{
		{storage.AppendV2Options{MetricFamilyName: "x", Metadata: gauge}, storage.AppendV2Options{MetricFamilyName: "x", Metadata: gauge}},
		{storage.AppendV2Options{}, storage.AppendV2Options{MetricFamilyName: "x", Metadata: gauge}},
		{storage.AppendV2Options{MetricFamilyName: "x"}, storage.AppendV2Options{MetricFamilyName: "x"}},
		{storage.AppendV2Options{Metadata: gauge}, storage.AppendV2Options{MetricFamilyName: "x", Metadata: gauge}},
	} {
		app := l.AppenderV2(t.Context())
		var err error
		if ref, err = app.Append(ref, ls, 0, int64(i+1), 1, nil, nil, c.given); err != nil {
			t.Fatal(err)
		}
		if err := app.Commit(); err != nil {
			t.Fatal(err)
		}
		_, _, _, _, _, got, ok := l.Newest(ref)
		if !ok || got.MetricFamilyName != c.want.MetricFamilyName || got.Metadata != c.want.Metadata {
			t.Errorf("sample %d with %+v: %t, %+v, want %+v", i, c.given, ok, got, c.want)
		}
	}
}
