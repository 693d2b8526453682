package wal

import (
	"slices"
	"testing"
	"testing/synctest"

	"hwsagent/wal/internal/segment"
	"hwsagent/wal/internal/segmenttest"
	"hwsagent/wal/queue"
)

// Where both segments have lost commits, a cursor returns each one that either has, in order, and with places that do not go back.
func TestEachCommitIsReadWhereItIsIntact(t *testing.T) {
	const commits = 6
	for lost0 := range 1 << commits {
		for _, lost1 := range []int{0, 0b010101, 0b101010, 0b001100, 0b110011} {
			r := newRepeated(commits, 2)
			for i := 1; i < commits; i++ { // the first commit has the announcements
				if lost0>>i&1 == 1 {
					r.damage(0, i+1)
				}
				if lost1>>i&1 == 1 {
					r.damage(1, i+1)
				}
			}
			l := newFakeLog(r.segments[0], r.segments[1])
			c := newSilentCursor(l)
			var last Mark
			var missing uint64
			for number := uint64(1); number <= commits+1; number++ {
				if both := lost0 & lost1 >> (number - 1) & 1; both == 1 && number > 1 {
					missing += r.samples
					continue
				}
				e, err := c.next(l.head())
				if err != nil || e == nil || e.End.Commit != number || e.MinT != int64(number) || e.Count() != r.samples {
					t.Fatalf("%b and %b are lost: instead of commit %d it reads %+v, %v", lost0, lost1, number, e, err)
				}
				if e.Missing.Dropped[queue.Damage] != missing || e.End.Before(last.Position) {
					t.Fatalf("%b and %b are lost: commit %d at %v after %v, %d missing, want %d", lost0, lost1, number, e.End.Position, last.Position, e.Missing.Dropped[queue.Damage], missing)
				}
				last, missing = e.End, 0
				// A cursor that begins here returns the same commits.
				again := newSilentCursor(l)
				again.place(last, Mark{})
				for {
					e, err := again.next(l.head())
					if err != nil {
						t.Fatal(err)
					}
					if e == nil {
						break
					}
					number := e.End.Commit
					if lost0&lost1>>(number-1)&1 == 1 && number > 1 || e.Count() != r.samples {
						t.Fatalf("%b and %b are lost: from commit %d on it reads %+v", lost0, lost1, last.Commit, e)
					}
				}
				if again.last.Commit != commits+1 {
					t.Fatalf("%b and %b are lost: from commit %d on it reads up to %d", lost0, lost1, last.Commit, again.last.Commit)
				}
				again.release()
			}
			c.release()
			if n := len(l.series.free); n != l.series.slots {
				t.Fatalf("%d of %d series are held", l.series.slots-n, l.series.slots)
			}
		}
	}
}

// A page of the repetition that the disk does not read is tried again, and then given up, although the page of the open segment is readable.
func TestRepetitionThatTheDiskRefuses(t *testing.T) {
	const commits, samples = 12, 2000
	for name, fails := range map[string]int{"once": 1, "for good": 1 << 30} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRepeated(commits, samples)
				lost := 0
				for i, end := range r.segments[1].Ends {
					if begin := r.segments[1].Ends[max(0, i-1)]; i > 0 && begin > segment.PageSize && end < 2*segment.PageSize {
						lost = i + 1
						break
					}
				}
				if lost == 0 {
					t.Fatal("no commit is in the second page alone")
				}
				r.damage(0, lost)
				l := newFakeLog(r.segments[0], r.segments[1])
				l.badPage, l.badReads = 1, fails
				got := openTestReader(t, memTargets(t, newMemDir(), targetsOptions{}), l, "a", ReaderOptions{StartAt: StartOldest})
				var delivered, missing uint64
				for got.last().Commit < l.head().Commit {
					e := mustNextLong(t, got)
					delivered, missing = delivered+e.Count(), missing+e.Missing.Dropped[queue.Damage]
				}
				want := uint64(0)
				if fails > 1 {
					want = samples
				}
				if missing != want || delivered != (commits+1)*samples-want {
					t.Errorf("%d delivered, %d missing, want %d", delivered, missing, want)
				}
				if l.badReads == fails {
					t.Error("the fault did not fire")
				}
			})
		})
	}
}

// A power cut took the first two commits, as only the header of the segment that repeats the third and fourth says. They do not count as damage.
func TestPowerCutBeforeARepetition(t *testing.T) {
	last := segmenttest.New(0, ID{9}, 4, 8)
	again := segmenttest.New(1, ID{9}, 2, 4)
	again.Header.Found, again.Header.Relogged = 0, 5
	for _, s := range []*segmenttest.Builder{last, again} {
		for i := s.Header.Commit; i < 5; i++ {
			s.Commit(2, 1, 1, segmenttest.Series(1, 2), segmenttest.Samples(1, 1, 2))
		}
	}
	l := newFakeLog(last, again)
	got := commitsAndMissing(t, l)
	if want := []uint64{3, 4, 0, 4, 0, 0, 5, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("commits, and what is missing before them for a power cut and for damage: %v, want %v", got, want)
	}
}

// commitsAndMissing reads a log to its end. It returns for each commit its number, and the samples missing before it for a power
// cut and for damage.
func commitsAndMissing(t *testing.T, l *fakeLog) (got []uint64) {
	t.Helper()
	c := newSilentCursor(l)
	for {
		e, err := c.next(l.head())
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			return got
		}
		got = append(got, e.End.Commit, e.Missing.Dropped[queue.PowerCut], e.Missing.Dropped[queue.Damage])
	}
}
