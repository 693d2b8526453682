package wal

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"hwsagent/wal/internal/segment"
	"hwsagent/wal/internal/segmenttest"
)

// A process logged its last commits again in a second segment, whose header a power cut destroyed, and in a third one, of which
// the cut left some commits only. A start continues with the first segment, which has all of them: no reader gets its last
// commits in place of those that come after the start.
func TestStartBehindATornRepetition(t *testing.T) {
	const commits, left = 10, 4
	for i := range 9 {
		// The segments between have an unreadable header and nothing, fewer, or more commits than the last one.
		between, held := i%3, []int{0, left - 2, left + 2}[i/3]
		t.Run(fmt.Sprintf("%d segments without a header between, of %d commits", between, held), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newMemDir()
				first := segmenttest.New(0, ID{9}, 0, 0)
				again := segmenttest.New(1+between, ID{9}, 0, 0)
				again.Header.Relogged = commits + 2
				again.Header.PrevID, again.Header.PrevEnd = ID{byte(between), 77}, 395
				if between == 0 {
					again.Header.PrevID, again.Header.PrevEnd = first.Header.Segment, 1<<20
				}
				for _, s := range []*segmenttest.Builder{first, again} {
					s.Commit(2, 1, 1, segmenttest.Series(1, 2), segmenttest.Samples(1, 1, 2))
					for i := int64(2); i <= commits; i++ {
						s.Commit(2, i, i, segmenttest.Samples(i, 1, 2))
					}
				}
				d.entries[segment.Name(0)] = &inode{data: imageOf(first.B)}
				for i := range between {
					b := make([]byte, 395)
					if held > 0 {
						s := segmenttest.New(1+i, ID{9}, 0, 0)
						s.Commit(2, 1, 1, segmenttest.Series(1, 2), segmenttest.Samples(1, 1, 2))
						for i := int64(2); i <= int64(held); i++ {
							s.Commit(2, i, i, segmenttest.Samples(i, 1, 2))
						}
						b = s.B
						b[10] ^= 0xff
					}
					d.entries[segment.Name(1+i)] = &inode{data: imageOf(b)}
				}
				d.entries[segment.Name(1+between)] = &inode{data: imageOf(again.B[:again.Ends[left-1]])}
				l := openLog(t, memOptions(t, d, newMemDir()))
				want := []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
				for i := range int64(20) {
					want = append(want, 1000+i)
					if err := commitFloats(l, 3, 1000+i, 1); err != nil {
						t.Fatal(err)
					}
				}
				times, missing := readFirsts(t, l)
				if !slices.Equal(times, want) {
					t.Errorf("read %v, missing %+v", times, missing)
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// The same, with a page of the torn repetition that the disk refuses to read: the segment is kept, because the page may have more
// commits. Those after the start get numbers behind those of the first segment, and readers get both.
func TestStartBehindATornRepetitionThatTheDiskRefuses(t *testing.T) {
	const commits, samples = 12, 2000
	for left := 2; left < commits; left++ {
		for page := range int64(3) {
			t.Run(fmt.Sprintf("%d commits are left, page %d is refused", left, page), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRepeated(commits, samples)
					d := newMemDir()
					first, again := r.segments[0], r.segments[1]
					d.entries[segment.Name(0)] = &inode{data: imageOf(first.B)}
					d.entries[segment.Name(1)] = &inode{data: imageOf(again.B[:again.Ends[left-1]])}
					if page*segment.PageSize >= again.Ends[left-1] {
						t.Skip("it has no such page")
					}
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
