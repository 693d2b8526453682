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
	samples []string // "labels@t=v"
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
				c.samples = append(c.samples, fmt.Sprintf("%s@%d=%g", testLabels(r), ts, float64(r)+float64(ts)/1e6))
			}
			p.commits = append(p.commits, c)
		}
		p.segments = append(p.segments, s)
	}
	return p
}

func (p *plan) log() *fakeLog { return newFakeLog(p.segments...) }

func sampleStrings(e *Entry) []string {
	var out []string
	for _, s := range e.Samples {
		out = append(out, fmt.Sprintf("%s@%d=%g", s.Series.Labels, s.T, s.V))
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
		if got := sampleStrings(e); !slices.Equal(got, want.samples) {
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

// A restart after any commit goes on with the following one.
func TestReaderResumesAtEveryCommit(t *testing.T) {
	p := newPlan(3, 12, 40)
	l := p.log()
	dir := t.TempDir()
	for i := -1; i < len(p.commits)-1; i++ {
		ts := openTestTargets(t, dir, targetsOptions{})
		r, err := ts.open(l, "a", ReaderOptions{StartAt: StartOldest})
		if err != nil {
			t.Fatal(err)
		}
		e := mustNext(t, r)
		if want := p.commits[i+1]; e.End != want.mark || !slices.Equal(sampleStrings(e), want.samples) {
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
