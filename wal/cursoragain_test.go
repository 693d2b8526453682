package wal

import (
	"errors"
	"slices"
	"testing"

	"hwsagent/wal/internal/segmenttest"
	"hwsagent/wal/queue"
)

// Two segments with the same commits: the header of either knows which samples a power cut took, also if that of the first is
// damaged.
func TestPowerCutIsKnownBehindADamagedHeader(t *testing.T) {
	first := segmenttest.New(0, ID{9}, 2, 4)
	again := segmenttest.New(1, ID{9}, 2, 4)
	first.Header.Found = 0
	again.Header.Found, again.Header.Relogged = 0, 5
	for _, s := range []*segmenttest.Builder{first, again} {
		for i := 2; i < 5; i++ {
			s.Commit(2, 1, 1, segmenttest.Series(1, 2), segmenttest.Samples(1, 1, 2))
		}
	}
	for _, damage := range []bool{false, true} {
		if damage {
			first.B[10] ^= 0xff
		}
		l := newFakeLog(first, again)
		got := commitsAndMissing(t, l)
		if want := []uint64{3, 4, 0, 4, 0, 0, 5, 0, 0}; !slices.Equal(got, want) {
			t.Errorf("damaged %t: got %v, want %v", damage, got, want)
		}
	}
}

// Where a commit lacks samples in both segments, it is read where it has more of them.
func TestPoorerRepetitionIsNotPreferred(t *testing.T) {
	a := segmenttest.New(0, ID{9}, 0, 0)
	a.Commit(1, 1, 1, segmenttest.Series(1), segmenttest.Samples(1, 1))
	a.Commit(1, 2, 2, segmenttest.Series(2), segmenttest.Samples(2, 2))
	a.Commit(2, 3, 3, segmenttest.Samples(3, 1, 2))
	b := segmenttest.New(1, ID{9}, 0, 0)
	b.Header.Relogged = 3
	header := len(b.Start().B)
	b.Commit(1, 1, 1, segmenttest.Series(1), segmenttest.Samples(1, 1))
	b.Commit(1, 2, 2, segmenttest.Series(2), segmenttest.Samples(2, 2))
	b.Commit(2, 3, 3, segmenttest.Samples(3, 1, 2))
	b.Commit(2, 4, 4, segmenttest.Series(1, 2), segmenttest.Samples(4, 1, 2))
	// The announcement of series 2 is lost in a, both are lost in b.
	a.B[a.Ends[0]+9] ^= 0xff
	b.B[b.Ends[0]+9] ^= 0xff
	b.B[header+9] ^= 0xff
	c := newSilentCursor(newFakeLog(a, b))
	commits := 0
	for {
		e, err := c.next(c.tail.head())
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			break
		}
		commits++
		if e.End.Commit == 3 && e.Count() != 1 {
			t.Errorf("commit 3 has %d samples; series 1 of it is readable in the first segment", e.Count())
		}
	}
	if commits < 3 {
		t.Errorf("%d commits only", commits)
	}
}

// While the repetition of a commit that lacks samples cannot be opened, the commit is not returned: a later try returns all of it.
func TestUnreadableRepetitionIsTriedAgain(t *testing.T) {
	a := segmenttest.New(0, ID{9}, 0, 0)
	b := segmenttest.New(1, ID{9}, 0, 0)
	b.Header.Relogged = 2
	for _, s := range []*segmenttest.Builder{a, b} {
		s.Commit(1, 1, 1, segmenttest.Series(1), segmenttest.Samples(1, 1))
		s.Commit(1, 2, 2, segmenttest.Series(2), segmenttest.Samples(2, 2))
	}
	b.Commit(1, 3, 3, segmenttest.Samples(3, 1))
	a.B[a.Ends[0]+9] ^= 0xff // in the announcement of series 2
	l := newFakeLog(a, b)
	c := newSilentCursor(l)
	if e, err := c.next(l.head()); err != nil || e.End.Commit != 1 {
		t.Fatalf("%+v, %v", e, err)
	}
	l.openErr = errDisk
	if e, err := c.next(l.head()); e != nil || !errors.Is(err, errDisk) {
		t.Fatalf("%+v, %v", e, err)
	}
	if e, err := c.next(l.head()); err != nil || e.End.Commit != 2 || e.Count() != 1 || e.Missing != (queue.Outcome{}) {
		t.Fatalf("%+v, %v", e, err)
	}
}

// The announcement of a series is lost in the open segment, and while its repetition cannot be opened, a commit with samples of
// that series is not returned: a later try returns all of it.
func TestPoorCommitWaitsForItsRepetition(t *testing.T) {
	a := segmenttest.New(0, ID{9}, 0, 0)
	b := segmenttest.New(1, ID{9}, 0, 0)
	b.Header.Relogged = 4
	for _, s := range []*segmenttest.Builder{a, b} {
		s.Commit(1, 1, 1, segmenttest.Series(1), segmenttest.Samples(1, 1))
		s.Commit(1, 2, 2, segmenttest.Series(2), segmenttest.Samples(2, 2))
		s.Commit(1, 3, 3, segmenttest.Samples(3, 1))
		s.Commit(2, 4, 4, segmenttest.Samples(4, 1, 2))
	}
	b.Commit(1, 5, 5, segmenttest.Samples(5, 1))
	a.B[a.Ends[0]+9] ^= 0xff // in the announcement of series 2
	l := newFakeLog(a, b)
	c := newSilentCursor(l)
	c.place(a.Mark(1), Mark{}) // of the commit that announces series 2, so that nothing is missing before the third
	c.last.Commit, c.last.Total = 2, 2
	if e, err := c.next(l.head()); err != nil || e.End.Commit != 3 || e.Missing != (queue.Outcome{}) {
		t.Fatalf("%+v, %v", e, err)
	}
	l.openErr = errDisk
	if e, err := c.next(l.head()); e != nil || !errors.Is(err, errDisk) || c.want != 0 {
		t.Fatalf("%+v, %v in segment %d", e, err, c.want)
	}
	if e, err := c.next(l.head()); err != nil || e.End.Commit != 4 || e.Count() != 2 || e.Missing != (queue.Outcome{}) {
		t.Fatalf("%+v, %v", e, err)
	}
}
