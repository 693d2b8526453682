package wal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/wal/internal/disk"
	"hwsagent/wal/internal/segment"
	"hwsagent/wal/internal/segmenttest"
	"hwsagent/wal/queue"
)

// plan is a small log of several segments: series come and go, every commit tells
// its samples apart by their values.
type plan struct {
	segments []*segmenttest.Builder
	commits  []plannedCommit
}

type plannedCommit struct {
	mark    Mark
	samples []testSample

	// Of plans that are to be damaged: where the commit is, what it holds.
	segment         int
	start, end      int64
	refs, announces []int
}

// testSample is one sample of samplesRecord; ref is its series' label n.
type testSample struct {
	ref string
	t   int64
	v   float64
}

func testSampleOf(ref int, t int64) testSample {
	return testSample{fmt.Sprint(ref), t, float64(ref) + float64(t)/1e6}
}

// newPlan makes segments with so many commits of so many series each. Three commits of
// four use the same series, which their segment announces once.
func newPlan(segments, commits, series int) *plan {
	p := &plan{}
	var number, total uint64
	for n := range segments {
		s := segmenttest.New(n, ID{9}, number, total)
		announced := map[int]bool{}
		for i := range commits {
			from := 0
			if i%4 == 3 {
				from = series / 2
			}
			refs := segmenttest.Refs(from, from+series)
			var news []int
			for _, r := range refs {
				if !announced[r] {
					announced[r] = true
					news = append(news, r)
				}
			}
			ts := int64(number+1) * 1000
			var recs [][]byte
			if len(news) > 0 {
				recs = append(recs, segmenttest.Series(news...))
			}
			s.Commit(uint64(len(refs)), ts, ts, append(recs, segmenttest.Samples(ts, refs...))...)
			number, total = s.Next.Number, s.Next.Total
			c := plannedCommit{mark: s.Mark(i)}
			c.mark.Commit, c.mark.Total = number, total
			for _, r := range refs {
				c.samples = append(c.samples, testSampleOf(r, ts))
			}
			p.commits = append(p.commits, c)
		}
		p.segments = append(p.segments, s)
	}
	return p
}

func (p *plan) log() *fakeLog { return newFakeLog(p.segments...) }

func testSamples(e *Entry) []testSample {
	out := make([]testSample, 0, len(e.Samples))
	for _, s := range e.Samples {
		out = append(out, testSample{s.Series.Labels().Get("n"), s.T, s.V})
	}
	return out
}

func openTestTargets(t *testing.T, dir string, o targetsOptions) *targets {
	t.Helper()
	d, err := disk.Open(dir, disk.SyncPath)
	if err != nil {
		t.Fatal(err)
	}
	ts, err := openTargets(d, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ts.close(); err != nil {
			t.Error(err)
		}
		d.Close()
	})
	return ts
}

func openTestReader(t *testing.T, ts *targets, l tail, name string, o ReaderOptions) *Reader {
	t.Helper()
	r, err := ts.open(l, name, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func mustNext(t *testing.T, r *Reader) *Entry {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	e, err := r.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func checkLedger(t *testing.T, r *Reader) {
	t.Helper()
	if l := r.Ledger(); !l.Balanced() {
		t.Fatalf("ledger does not add up: %+v", l)
	}
}

// A reader yields every commit, in order, with its samples; across segments a series
// is the same *Series.
func TestReaderReadsEverything(t *testing.T) {
	p := newPlan(3, 12, 40)
	l := p.log()
	ts := openTestTargets(t, t.TempDir(), targetsOptions{})
	r := openTestReader(t, ts, l, "a", ReaderOptions{StartAt: StartOldest})
	seen := map[string]*Series{}
	for i, want := range p.commits {
		e := mustNext(t, r)
		if e.End != want.mark {
			t.Fatalf("commit %d: mark %+v, want %+v", i, e.End, want.mark)
		}
		if got := testSamples(e); !slices.Equal(got, want.samples) {
			t.Fatalf("commit %d: got %v\nwant %v", i, got, want.samples)
		}
		if e.Missing.Sum() != 0 {
			t.Fatalf("commit %d: missing %+v", i, e.Missing)
		}
		for _, s := range e.Samples {
			key := s.Series.Labels().String()
			if seen[key] != nil && seen[key] != s.Series {
				t.Fatalf("series %s has two identities", key)
			}
			seen[key] = s.Series
			if s.Series.Slot() < 0 || s.Series.Slot() >= 60 {
				t.Fatalf("slot %d is not dense", s.Series.Slot())
			}
		}
		r.Advance(e.End, queue.Outcome{Delivered: e.Count()})
		checkLedger(t, r)
	}
	if got := r.Ledger(); got.Pending != 0 || got.Delivered != p.commits[len(p.commits)-1].mark.Total {
		t.Errorf("ledger at the end: %+v", got)
	}
}

// resumeEverywhere restarts the reader after every commit of the plan.
func resumeEverywhere(t *testing.T, p *plan) {
	l := p.log()
	dir := t.TempDir()
	for i := -1; i < len(p.commits)-1; i++ {
		ts := openTestTargets(t, dir, targetsOptions{})
		r, err := ts.open(l, "a", ReaderOptions{StartAt: StartOldest})
		if err != nil {
			t.Fatal(err)
		}
		e := mustNext(t, r)
		if want := p.commits[i+1]; e.End != want.mark || !slices.Equal(testSamples(e), want.samples) {
			t.Fatalf("after commit %d: got %+v, want %+v", i, e.End, want.mark)
		}
		r.Advance(e.End, queue.Outcome{Delivered: e.Count()})
		checkLedger(t, r)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if err := ts.close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A restart after any commit goes on with the following one.
func TestReaderResumesAtEveryCommit(t *testing.T) { resumeEverywhere(t, newPlan(3, 12, 40)) }

// A page that ends in 1 to 6 bytes of padding, or in none, must not confuse a resume.
func TestReaderResumesAroundPadding(t *testing.T) {
	for left := range segment.FragmentHeaderSize {
		t.Run(fmt.Sprintf("%d bytes left", left), func(t *testing.T) {
			s := segmenttest.New(0, ID{9}, 0, 0)
			p := &plan{segments: []*segmenttest.Builder{s}}
			add := func(ref int, ts int64) {
				c := plannedCommit{mark: s.Mark(len(s.Ends) - 1), samples: []testSample{testSampleOf(ref, ts)}}
				c.mark.Commit, c.mark.Total = s.Next.Number, s.Next.Total
				p.commits = append(p.commits, c)
			}
			s.Commit(1, 1, 1, segmenttest.Series(5), segmenttest.Samples(1, 5))
			add(5, 1)
			for page := range 3 {
				ts := int64(10 * (page + 1))
				s.PadTo(t, left, ts, 6)
				add(6, ts)
				s.Commit(1, ts+1, ts+1, segmenttest.Samples(ts+1, 5))
				add(5, ts+1)
			}
			if len(s.B) < 3*segment.PageSize {
				t.Fatalf("the segment has only %d bytes", len(s.B))
			}
			resumeEverywhere(t, p)
		})
	}
}

// A reader follows a log that grows and rolls while it reads, and sees no commit
// before it is published.
func TestReaderFollows(t *testing.T) {
	p := newPlan(4, 30, 50)
	l := newFakeLog()
	l.mark.Log = ID{9}
	ts := openTestTargets(t, t.TempDir(), targetsOptions{})
	r := openTestReader(t, ts, l, "a", ReaderOptions{})
	go func() {
		for _, s := range p.segments {
			grow := &segmenttest.Builder{Header: s.Header}
			for i, end := range s.Ends {
				grow.B = s.B[:end]
				grow.Next.Number = s.Header.Commit + uint64(i) + 1
				grow.Next.Total = s.Header.Total + uint64(i+1)*50
				l.put(grow)
			}
		}
	}()
	for i, want := range p.commits {
		e := mustNext(t, r)
		if e.End != want.mark || !slices.Equal(testSamples(e), want.samples) || e.Missing.Sum() != 0 {
			t.Fatalf("commit %d: %+v, want %+v", i, e.End, want.mark)
		}
		r.Advance(e.End, queue.Outcome{Delivered: e.Count()})
		checkLedger(t, r)
	}
}

// After Rewind the entries after the savepoint come once more.
func TestRewind(t *testing.T) {
	p := newPlan(3, 5, 6)
	ts := openTestTargets(t, t.TempDir(), targetsOptions{})
	r := openTestReader(t, ts, p.log(), "a", ReaderOptions{StartAt: StartOldest})
	deliver(t, r, 4)
	oldest := time.UnixMilli(5 * 1000)
	for round := range 3 {
		for i := range 6 + round {
			if e := mustNext(t, r); e.End != p.commits[4+i].mark || !slices.Equal(testSamples(e), p.commits[4+i].samples) {
				t.Fatalf("round %d: %+v, want %+v", round, e.End, p.commits[4+i].mark)
			}
		}
		if got := r.OldestPending(); !got.Equal(oldest) {
			t.Errorf("oldest pending is %v, want %v", got, oldest)
		}
		r.Rewind()
		if got := r.OldestPending(); !got.Equal(oldest) {
			t.Errorf("oldest pending after Rewind is %v, want %v", got, oldest)
		}
	}
	deliver(t, r, len(p.commits)-4)
	if got := r.OldestPending(); !got.IsZero() {
		t.Errorf("oldest pending at the end is %v", got)
	}
	if n := r.Pending(); n != 0 {
		t.Errorf("pending %d bytes", n)
	}
}

// However many entries wait, the time of the oldest is known and little memory is
// used.
func TestOldestPendingIsBounded(t *testing.T) {
	var p pendingTimes
	entry := func(i int) *Entry {
		return &Entry{End: Mark{Commit: uint64(i)}, MinT: int64(i), Samples: make([]Sample, 1)}
	}
	for i := 1; i <= 100_000; i++ {
		p.add(entry(i))
	}
	if len(p.spans) > maxPendingTimes || p.oldest().UnixMilli() != 1 {
		t.Errorf("%d spans, oldest %d", len(p.spans), p.oldest().UnixMilli())
	}
	p.settle(Mark{Commit: 60_000})
	if got := p.oldest().UnixMilli(); got > 60_001 || got < 50_000 {
		t.Errorf("oldest %d", got)
	}
}

// While the disk refuses, the reader waits; a segment that cannot be opened is never
// given up, a page that cannot be read is, and counted.
func TestReaderSurvivesDiskErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := damagePlan(41, 0)
		l := p.log()
		ts, err := openTargets(newMemDir(), targetsOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := ts.open(l, "a", ReaderOptions{StartAt: StartOldest})
		if err != nil {
			t.Fatal(err)
		}
		fail := func(open, read error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.openErr, l.readErr = open, read
		}
		fail(errDisk, nil) // once
		if e := mustNextLong(t, r); e.End != p.commits[0].mark {
			t.Fatalf("after a refused opening: %+v", e.End)
		}
		if l.openErr != nil {
			t.Fatal("the fault did not fire")
		}
		went := make(chan *Entry)
		go func() { went <- mustNextLong(t, r) }()
		fail(nil, errDisk) // the pages that are read already still count
		var got []*Entry
		for range 2 {
			synctest.Wait()
			time.Sleep(time.Second)
		}
		fail(nil, nil)
		got = append(got, <-went)
		if got[0].Missing.Sum() != 0 {
			t.Errorf("a short fault lost %+v", got[0].Missing)
		}
		l.mu.Lock()
		l.badPage = 1
		l.mu.Unlock()
		var missing queue.Outcome
		for r.cursor.last.Commit < l.head().Commit {
			e := mustNextLong(t, r)
			missing.Add(e.Missing)
		}
		if missing.Dropped[queue.Damage] == 0 || missing.Dropped[queue.Damage] > 60 {
			t.Errorf("an unreadable page lost %+v", missing)
		}
		if err := errors.Join(r.Close(), ts.close()); err != nil {
			t.Error(err)
		}
	})
}

func mustNextLong(t *testing.T, r *Reader) *Entry {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	e, err := r.Next(ctx)
	if err != nil {
		t.Error(err)
		return &Entry{}
	}
	return e
}

// What had to be skipped is counted, once, however often it is read.
func TestSkippedIsCounted(t *testing.T) {
	p := damagePlan(42, 0)
	l := p.log()
	clear(l.files[0][3000:3100])
	delete(l.files, 1)
	ts := openTestTargets(t, t.TempDir(), targetsOptions{})
	r := openTestReader(t, ts, l, "a", ReaderOptions{StartAt: StartOldest})
	var first int64
	for range 2 {
		for e := mustNext(t, r); e.End.Commit < l.head().Commit; {
			e = mustNext(t, r)
		}
		bytes, holes := r.Skipped()
		if first == 0 {
			first = bytes
		}
		if bytes < 100 || bytes != first || holes != 1 {
			t.Errorf("skipped %d bytes and %d segments", bytes, holes)
		}
		r.Rewind()
	}
}

// Next ends with its context, also where there is something to read.
func TestNextWithoutTime(t *testing.T) {
	l := openLog(t, Options{})
	r := openReader(t, l, "a", ReaderOptions{})
	if err := commitFloats(l, 1, 1, 1); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if e, err := r.Next(ctx); e != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", e, err)
	}
}
