package wal

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
)

// steady appends to a log as a probe does: the same series in each commit.
type steady struct {
	log    *Log
	series []labels.Labels
	refs   []storage.SeriesRef
	t      int64
}

func newSteady(tb testing.TB, series int) *steady {
	s := &steady{
		log:    openLog(tb, Options{Settings: Settings{MaxBytes: 256 << 20}}),
		series: make([]labels.Labels, series), refs: make([]storage.SeriesRef, series),
		t: 1_700_000_000_000,
	}
	for i := range s.series {
		s.series[i] = sampleOf(i)
	}
	return s
}

func (s *steady) commit(tb testing.TB) {
	s.t += 15_000
	app := s.log.AppenderV2(tb.Context())
	for i := range s.series {
		ref, err := app.Append(s.refs[i], s.series[i], 0, s.t, float64(s.t%977)+float64(i), nil, nil, storage.AppendV2Options{})
		if err != nil {
			tb.Fatal(err)
		}
		s.refs[i] = ref
	}
	if err := app.Commit(); err != nil {
		tb.Fatal(err)
	}
}

// allocations counts what a benchmark allocates in all goroutines.
type allocations struct{ before runtime.MemStats }

func newAllocations() *allocations {
	m := &allocations{}
	runtime.ReadMemStats(&m.before)
	return m
}

func (m *allocations) perSample(b *testing.B, samples int) {
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	n := float64(samples)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/sample")
	b.ReportMetric(float64(after.TotalAlloc-m.before.TotalAlloc)/n, "B/sample")
	b.ReportMetric(float64(after.Mallocs-m.before.Mallocs)/n, "allocs/sample")
}

func BenchmarkAppendCommit(b *testing.B) {
	for _, n := range []int{1000, 5000, 10_000} {
		b.Run(fmt.Sprintf("series=%d", n), func(b *testing.B) {
			s := newSteady(b, n)
			s.commit(b)
			m := newAllocations()
			for b.Loop() {
				s.commit(b)
			}
			m.perSample(b, b.N*n)
		})
	}
}

// TestSteadyStateAllocatesNothing: what is left is of each commit, none of each sample.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	const series = 5000
	s := newSteady(t, series)
	r, err := s.log.Reader("target", ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	samples := 0
	next := func() {
		e, err := r.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		samples += len(e.Samples)
	}
	for range 10 {
		s.commit(t)
		next()
	}
	const runs = 50
	if n := testing.AllocsPerRun(runs, func() { s.commit(t) }); n > series/100 {
		t.Errorf("append and commit of %d samples allocate %.0f times", series, n)
	}
	samples = 0
	if n := testing.AllocsPerRun(runs, next); n > series/100 {
		t.Errorf("reading a commit of %d samples allocates %.0f times", series, n)
	}
	if want := (runs + 1) * series; samples != want { // AllocsPerRun warms up with one more
		t.Errorf("read %d samples, want %d", samples, want)
	}
}

// TestCursorSharesSeries: the log has one structure for a series, of the appender and of cursors.
func TestCursorSharesSeries(t *testing.T) {
	s := newSteady(t, 10)
	r, err := s.log.Reader("target", ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s.commit(t)
	e, err := r.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Samples) != len(s.series) {
		t.Fatalf("read %d samples, want %d", len(e.Samples), len(s.series))
	}
	for i, got := range e.Samples {
		if !labels.Equal(got.Series.Labels(), s.series[i]) {
			t.Errorf("sample %d has labels %v, want %v", i, got.Series.Labels(), s.series[i])
		}
		if got.Series != s.log.series.byRef.Get(uint64(s.refs[i])) {
			t.Errorf("sample %d has a series of its own", i)
		}
	}
}
