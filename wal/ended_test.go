package wal

import (
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/wal/internal/segment"
	"hwsagent/wal/internal/segmenttest"
)

// forget makes the log forget the series of which the label n is at least that, and returns how many they are.
func forget(l *Log, from int) (n int) {
	l.series.mu.Lock()
	defer l.series.mu.Unlock()
	l.series.forgetLocked(func(s *Series) bool {
		is, err := strconv.Atoi(l.series.symbols.value(s.labels, "n"))
		if err != nil || is < from {
			return false
		}
		n++
		return true
	})
	return n
}

// numbered is the n-th series of these tests.
func numbered(n int) labels.Labels { return labels.FromStrings("__name__", "m", "n", strconv.Itoa(n)) }

// commitNumbered commits a sample at time t of each series from one number up to another.
func commitNumbered(t *testing.T, l *Log, from, to int, ts int64) {
	t.Helper()
	app := l.AppenderV2(t.Context())
	for n := from; n < to; n++ {
		if _, err := app.Append(0, numbered(n), 0, ts, float64(n), nil, nil, storage.AppendV2Options{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
}

// TestReadersReleaseSeriesThatTheLogForgets: within one segment, readers at the head and behind it hold the series that the log still
// has, and their consumers learn which have ended.
func TestReadersReleaseSeriesThatTheLogForgets(t *testing.T) {
	l := openLog(t, Options{})
	first, second := openReader(t, l, "first", ReaderOptions{StartAt: StartOldest}), openReader(t, l, "second", ReaderOptions{StartAt: StartOldest})
	commitNumbered(t, l, 0, 100, 1)
	for _, r := range []*Reader{first, second} {
		nextEntry(t, r)
		if _, e, err := r.step(); e != nil || err != nil {
			t.Fatalf("entry %v, %v: the reader is not at the head", e, err)
		}
	}
	if n := forget(l, 40); n != 60 {
		t.Fatalf("%d series were forgotten", n)
	}
	commitNumbered(t, l, 0, 1, 2)
	ended := slices.Clone(nextEntry(t, first).Ended)
	if n := first.cursor.decode.series.size(); n != 40 || len(ended) != 60 {
		t.Errorf("the reader holds %d series and was told the end of %d, want 40 and 60", n, len(ended))
	}
	for _, s := range ended {
		if s.Gone() {
			t.Errorf("%s is gone, and the second reader is at an entry with it", s.Labels())
		}
	}
	if e := nextEntry(t, second); len(e.Ended) != 60 {
		t.Errorf("the second reader was told the end of %d series", len(e.Ended))
	}
	for _, s := range ended {
		if n, _ := strconv.Atoi(s.Labels().Get("n")); n < 40 || !s.Gone() {
			t.Errorf("%s is gone: %t", s.Labels(), s.Gone())
		}
	}
	if n := l.series.held(); n != 40 || l.head().Segment != 0 {
		t.Errorf("readers hold %d series in segment %d, want 40 in the first", n, l.head().Segment)
	}

	late := openReader(t, l, "late", ReaderOptions{StartAt: StartOldest})
	nextEntry(t, late)
	nextEntry(t, late)
	if n := late.cursor.decode.series.size(); n != 40 {
		t.Errorf("a reader that comes later holds %d series, want 40", n)
	}
	late.Release()
	commitNumbered(t, l, 0, 1, 3)
	nextEntry(t, late)
	if n := late.cursor.decode.series.size(); n != 40 {
		t.Errorf("a reader that reads the segment again holds %d series, want 40", n)
	}
}

// TestBatchBegunBeforeTheEndOfItsSeries: a batch that was begun before the log forgot its series is readable after the record of their
// end, and so is a series that comes back.
func TestBatchBegunBeforeTheEndOfItsSeries(t *testing.T) {
	l := openLog(t, Options{})
	r := openReader(t, l, "a", ReaderOptions{StartAt: StartOldest})
	commitNumbered(t, l, 0, 10, 1)
	var open [3]storage.AppenderV2
	for i := range open {
		open[i] = l.AppenderV2(t.Context())
		for n := 5; n < 10; n++ {
			if _, err := open[i].Append(0, numbered(n), 0, int64(3+i), float64(n), nil, nil, storage.AppendV2Options{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	forget(l, 5)
	// The first batch has the record of the end and announces the series again, as does the one after another end.
	for i, app := range open {
		if i == 2 {
			commitNumbered(t, l, 0, 10, 9)
			forget(l, 5)
			commitNumbered(t, l, 0, 1, 10)
		}
		if err := app.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	counts := []int{}
	for last := uint64(0); last < l.head().Commit; {
		e := nextEntry(t, r)
		last = e.End.Commit
		counts = append(counts, len(e.Samples))
		for _, s := range e.Samples {
			if s.Series.Labels().Get("n") != strconv.Itoa(int(s.V)) || s.Series.Gone() {
				t.Errorf("sample %v of %s at %d, gone: %t", s.V, s.Series.Labels(), s.T, s.Series.Gone())
			}
		}
		if e.Missing.Sum() > 0 {
			t.Errorf("commit %d misses %+v", last, e.Missing)
		}
	}
	if want := []int{10, 5, 5, 10, 1, 5}; !slices.Equal(counts, want) {
		t.Errorf("commits have %v samples, want %v", counts, want)
	}
}

// TestEndOfManySeries: a small commit announces the end of some, a large one of as many as it has samples; no record of
// them is large.
func TestEndOfManySeries(t *testing.T) {
	const many = 90_000
	l := openLog(t, Options{SegmentBytes: 64 << 20})
	r := openReader(t, l, "a", ReaderOptions{StartAt: StartOldest})
	commitNumbered(t, l, 0, many, 1)
	nextEntry(t, r)
	forget(l, 0)
	var ended []int
	for ts := int64(2); l.series.ended != nil; ts++ {
		commitNumbered(t, l, many, many+[]int{1, 70_000}[ts/4%2], ts)
		ended = append(ended, len(nextEntry(t, r).Ended))
	}
	if want := []int{minEnded, minEnded, 70_000, many - 2*minEnded - 70_000}; !slices.Equal(ended, want) {
		t.Errorf("the ends of %v series, want %v", ended, want)
	}
	if n := cap(l.writer.encoder.rec); n > 3*recordBytes {
		t.Errorf("%d bytes are kept for records", n)
	}
}

// TestEndIsAnnouncedAfterAFailedWrite: if the commit with the record fails, a later one has it.
func TestEndIsAnnouncedAfterAFailedWrite(t *testing.T) {
	segments := newMemDir()
	l := openLog(t, memOptions(t, segments, newMemDir()))
	r := openReader(t, l, "a", ReaderOptions{StartAt: StartOldest})
	commitNumbered(t, l, 0, 10, 1)
	forget(l, 5)
	fails := 0
	segments.fault = func(op string) (int, error) {
		if op == "write" {
			fails++
			return 0, syscall.EIO
		}
		return 0, nil
	}
	if err := func() error {
		app := l.AppenderV2(t.Context())
		if _, err := app.Append(0, numbered(0), 0, 2, 0, nil, nil, storage.AppendV2Options{}); err != nil {
			t.Fatal(err)
		}
		return app.Commit()
	}(); err == nil || fails == 0 {
		t.Fatalf("the commit on a disk that failed %d times: %v", fails, err)
	}
	segments.fault = nil
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if commitFloats(l, 1, 3, 3) == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the log does not go on")
		}
	}
	ended := 0
	for last := uint64(0); last < l.head().Commit; {
		e := nextEntry(t, r)
		last, ended = e.End.Commit, ended+len(e.Ended)
	}
	if ended != 5 {
		t.Errorf("the ends of %d series, want 5", ended)
	}
}

// TestEndCountsInAValidCommitOnly: a record of an end that no commit confirms ends nothing; in a commit it does, until the
// series is announced again.
func TestEndCountsInAValidCommitOnly(t *testing.T) {
	ends := []byte{segment.TypeEnded, 2, 2} // 1 and 2
	s := segmenttest.New(0, ID{9}, 0, 0)
	s.Commit(2, 1, 1, segmenttest.Series(1, 2), segmenttest.Samples(1, 1, 2))
	s.Record(ends, 0)
	s.Commit(2, 2, 2, segmenttest.Samples(2, 1, 2))
	s.Commit(2, 3, 3, ends, segmenttest.Series(1), segmenttest.Samples(3, 1, 2))
	s.Commit(2, 4, 4, segmenttest.Series(2), segmenttest.Samples(4, 1, 2))
	l := newFakeLog(s)
	for behind := range uint64(4) { // commits that were read before
		c := newSilentCursor(l)
		c.place(Mark{Log: ID{9}, SegmentID: s.Header.Segment, Commit: behind, Total: 2 * behind}, Mark{})
		var got []int
		for e, err := c.next(l.head()); e != nil || err != nil; e, err = c.next(l.head()) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, len(e.Samples))
		}
		if want := []int{2, 2, 1, 2}[behind:]; !slices.Equal(got, want) {
			t.Errorf("after commit %d there are %d samples, want %d", behind, got, want)
		}
		c.release()
	}
}

// TestReleaseHoldsNothing: a lane that was at the head, or behind it, holds nothing after Release, and goes on with the commit after
// the last one.
func TestReleaseHoldsNothing(t *testing.T) {
	l := openLog(t, Options{})
	r := openReader(t, l, "a", ReaderOptions{StartAt: StartOldest})
	for ts := range int64(6) {
		commitNumbered(t, l, 0, 50, ts)
	}
	for ts := range int64(6) {
		if e := nextEntry(t, r); len(e.Samples) != 50 || e.Samples[0].T != ts {
			t.Fatalf("commit %+v has %d samples", e.End, len(e.Samples))
		}
		if ts == 5 { // at the head
			if _, e, err := r.step(); e != nil || err != nil {
				t.Fatalf("entry %v, %v: the reader is not at the head", e, err)
			}
		}
		if l.series.held() != 50 {
			t.Errorf("%d series are held", l.series.held())
		}
		r.Release()
		if n := l.series.held(); n != 0 {
			t.Errorf("%d series are held after commit %d", n, ts)
		}
	}
	commitNumbered(t, l, 0, 50, 6)
	if e := nextEntry(t, r); len(e.Samples) != 50 || e.Samples[0].T != 6 {
		t.Errorf("commit %+v has %d samples", e.End, len(e.Samples))
	}
}

// While no commit can say which series have ended, the log keeps a bounded number of them.
func TestEndedSeriesAreBounded(t *testing.T) {
	l := openLog(t, Options{SegmentBytes: 64 << 20})
	commitNumbered(t, l, 0, maxEnded+10, 1)
	if n := forget(l, 0); n != maxEnded+10 {
		t.Fatalf("%d series are forgotten, want %d", n, maxEnded+10)
	}
	if n := len(l.series.ended); n != maxEnded {
		t.Errorf("%d ended series are kept, want %d", n, maxEnded)
	}
}

// size is how many references the table has.
func (t *seriesTable) size() (n int) {
	for i := range t.refs {
		n += t.refs[i].Len()
	}
	return n
}

// held is how many series cursors hold.
func (m *seriesMap) held() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for s := range m.byHash.All() {
		if s.holders.Load() > 0 {
			n++
		}
	}
	return n
}
