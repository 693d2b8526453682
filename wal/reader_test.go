package wal

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"
)

// plan is a small log of several segments: series come and go, every commit tells
// its samples apart by their values.
type plan struct {
	segments []*segmentBuilder
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
		s := newSegment(n, ID{9}, number, total)
		announced := map[int]bool{}
		for i := range commits {
			from := 0
			if i%4 == 3 {
				from = series / 2
			}
			refs := refRange(from, from+series)
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
				recs = append(recs, seriesRecord(news...))
			}
			s.commit(uint64(len(refs)), ts, ts, append(recs, samplesRecord(ts, refs...))...)
			number, total = s.next.Number, s.next.Total
			c := plannedCommit{mark: s.mark(i)}
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
		out = append(out, testSample{s.Series.Labels.Get("n"), s.T, s.V})
	}
	return out
}

func openTestTargets(t *testing.T, dir string, o targetsOptions) *targets {
	t.Helper()
	d, err := openDirectory(dir)
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
		d.close()
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
			key := s.Series.Labels.String()
			if seen[key] != nil && seen[key] != s.Series {
				t.Fatalf("series %s has two identities", key)
			}
			seen[key] = s.Series
			if s.Series.Slot < 0 || s.Series.Slot >= 60 {
				t.Fatalf("slot %d is not dense", s.Series.Slot)
			}
		}
		r.Advance(e.End, Outcome{Delivered: e.Count()})
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
		r.Advance(e.End, Outcome{Delivered: e.Count()})
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
	for left := range fragmentHeaderSize {
		t.Run(fmt.Sprintf("%d bytes left", left), func(t *testing.T) {
			s := newSegment(0, ID{9}, 0, 0)
			p := &plan{segments: []*segmentBuilder{s}}
			add := func(ref int, ts int64) {
				c := plannedCommit{mark: s.mark(len(s.ends) - 1), samples: []testSample{testSampleOf(ref, ts)}}
				c.mark.Commit, c.mark.Total = s.next.Number, s.next.Total
				p.commits = append(p.commits, c)
			}
			s.commit(1, 1, 1, seriesRecord(5), samplesRecord(1, 5))
			add(5, 1)
			for page := range 3 {
				ts := int64(10 * (page + 1))
				s.padTo(t, left, ts, 6)
				add(6, ts)
				s.commit(1, ts+1, ts+1, samplesRecord(ts+1, 5))
				add(5, ts+1)
			}
			if len(s.b) < 3*pageSize {
				t.Fatalf("the segment has only %d bytes", len(s.b))
			}
			resumeEverywhere(t, p)
		})
	}
}
