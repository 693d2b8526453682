package wal

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"hwsagent/wal/internal/segment"
	"hwsagent/wal/internal/segmenttest"
)

// tornSegment is what a power cut left of a segment that a process began after an error, with the commits that were not durable.
type tornSegment struct {
	commits int
	header  bool // it is readable
}

// A process logged its last commits again, in one segment after another, and a power cut left some commits of each, of some without
// the header. Each combination of three or four such segments: a start loses no commit that one of them has up to the newest, and
// no reader gets a commit in place of one that comes after the start.
func TestStartBehindTornRepetitions(t *testing.T) {
	var kinds []tornSegment
	for _, n := range []int{0, 2, 4, 6} {
		kinds = append(kinds, tornSegment{n, true}, tornSegment{n, false})
	}
	for _, first := range kinds {
		for _, second := range kinds {
			for _, third := range kinds {
				startBehind(t, []tornSegment{first, second, third})
			}
		}
	}
	for _, between := range kinds {
		startBehind(t, []tornSegment{{6, true}, between, between, {4, true}})
	}
}

// startBehind runs one combination.
func startBehind(t *testing.T, segments []tornSegment) {
	t.Helper()
	t.Run(fmt.Sprint(segments), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { openAppendAndRead(t, segments) }) })
}

// openAppendAndRead writes the segments, opens the log, appends to it, and reads all.
func openAppendAndRead(t *testing.T, segments []tornSegment) {
	d := newMemDir()
	newest := 0
	for n, left := range segments {
		newest = max(newest, left.commits)
		s := segmenttest.New(n, ID{9}, 0, 0)
		if n > 0 { // the header before is the one that the cut may have taken: where the segment ended is not known
			s.Header.Relogged, s.Header.PrevID, s.Header.PrevEnd = 8, ID{byte(n), 77}, 1<<20
			if segments[n-1].header {
				s.Header.PrevID = segment.ID(segmenttest.New(n-1, ID{9}, 0, 0).Header.Segment)
			}
		}
		s.Start()
		for i := int64(1); i <= int64(left.commits); i++ {
			s.Commit(2, i, i, segmenttest.Series(1, 2), segmenttest.Samples(i, 1, 2))
		}
		if !left.header {
			s.B[10] ^= 0xff
		}
		d.entries[segment.Name(n)] = &inode{data: imageOf(s.B)}
	}
	l := openLog(t, memOptions(t, d, newMemDir()))
	var want []int64
	for i := range int64(20) {
		want = append(want, 1000+i)
		if err := commitFloats(l, 3, 1000+i, 1); err != nil {
			t.Fatal(err)
		}
	}
	times, missing := readFirsts(t, l)
	old := slices.DeleteFunc(slices.Clone(times), func(at int64) bool { return at >= 1000 })
	if !slices.Equal(times[len(old):], want) {
		t.Errorf("%+v: read %v, missing %+v: a commit after the start is lost", segments, times, missing)
	}
	for i := range newest {
		if !slices.Contains(old, int64(i+1)) {
			t.Errorf("%+v: read %v, missing %+v: commit %d is lost", segments, times, missing, i+1)
			break
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// A page of the torn repetition is one that the disk refuses to read: the segment is kept, because the page may have more commits.
// Those after the start get numbers behind those of the first segment, and readers get both.
func TestStartBehindATornRepetitionThatTheDiskRefuses(t *testing.T) {
	const commits, samples = 12, 2000
	for left := 2; left < commits; left++ {
		size := newRepeated(commits, samples).segments[1].Ends[left-1]
		for page := range min(3, (size+segment.PageSize-1)/segment.PageSize) {
			t.Run(fmt.Sprintf("%d commits are left, page %d is refused", left, page), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRepeated(commits, samples)
					d := newMemDir()
					first, again := r.segments[0], r.segments[1]
					d.entries[segment.Name(0)] = &inode{data: imageOf(first.B)}
					d.entries[segment.Name(1)] = &inode{data: imageOf(again.B[:again.Ends[left-1]])}
					fired := 0
					d.unreadable = func(name string, off int64) error {
						if name == segment.Name(1) && off/segment.PageSize == page {
							fired++
							return errDisk
						}
						return nil
					}
					l := openLog(t, memOptions(t, d, newMemDir()))
					want := []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
					for i := range int64(20) {
						want = append(want, 1000+i)
						if err := commitFloats(l, 3, 1000+i, 1); err != nil {
							t.Fatal(err)
						}
					}
					if times, missing := readFirsts(t, l); !slices.Equal(times, want) {
						t.Errorf("read %v, missing %+v", times, missing)
					}
					if fired == 0 {
						t.Error("nothing was refused")
					}
					if err := l.Close(); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}
