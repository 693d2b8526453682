package wal

import (
	"errors"
	"io/fs"
	"testing"

	"hwsagent/wal/internal/segment"
	"hwsagent/wal/internal/segmenttest"
)

// A target that begins with the oldest data begins before the first commit that is there, also if the header in
// front of it is damaged; a disk that refuses to say where that is refuses the target.
func TestOldestBehindADamagedHeader(t *testing.T) {
	for name, tc := range map[string]struct {
		openErr, readErr error
		segment          int // that it begins in; -1: an error
	}{
		"readable":            {nil, nil, 0},
		"gone":                {fs.ErrNotExist, nil, 1},
		"cannot be opened":    {errDisk, nil, -1},
		"page cannot be read": {nil, errDisk, -1},
	} {
		p := newPlan(5, 2, 6)
		l := p.log()
		l.files[0][10] ^= 0xff
		l.openErr, l.readErr = tc.openErr, tc.readErr
		m, err := oldest(l)
		if tc.segment < 0 {
			if !errors.Is(err, errDisk) {
				t.Errorf("%s: %+v, %v", name, m, err)
			}
			continue
		}
		var before Mark // of the last commit in front of that segment
		for _, c := range p.commits {
			if c.mark.Segment < tc.segment {
				before = c.mark
			}
		}
		if err != nil || m.Segment != tc.segment || m.Commit < before.Commit || m.Total != before.Total {
			t.Errorf("%s: begins at %+v, %v; want behind %+v", name, m, err, before)
		}
	}
}

// logOfSegments is a log of which only the list of segments is looked at.
type logOfSegments struct {
	tail
	list []segment.Info
	at   Mark
}

func (l logOfSegments) segments() []segment.Info { return l.list }
func (l logOfSegments) head() Mark               { return l.at }

// Commits that were not durable when an fsync failed are logged once more, in the next segment. When making room has removed
// the segments that had them first, a target that begins with the oldest data begins before them, not with the oldest segment.
func TestOldestIsBeforeCommitsThatAreLoggedAgain(t *testing.T) {
	info := func(number int, commit, total, relogged uint64) segment.Info {
		return segment.Info{Number: number, Header: segment.Header{
			Version: 2, Number: number, Commit: commit, Total: total, Found: total, Relogged: relogged,
		}}
	}
	for name, tc := range map[string]struct {
		list          []segment.Info
		head          int
		commit, total uint64
	}{
		"nothing is logged again":             {[]segment.Info{info(1, 10, 30, 0), info(2, 12, 36, 0)}, 2, 10, 30},
		"later ones are logged again":         {[]segment.Info{info(1, 10, 30, 0), info(2, 11, 33, 12)}, 2, 10, 30},
		"earlier ones are logged again":       {[]segment.Info{info(1, 10, 30, 0), info(2, 4, 12, 12)}, 2, 4, 12},
		"twice":                               {[]segment.Info{info(1, 10, 30, 0), info(2, 4, 12, 12), info(3, 2, 6, 13)}, 3, 2, 6},
		"in a segment that could not be made": {[]segment.Info{info(1, 10, 30, 0), info(2, 4, 12, 12)}, 1, 10, 30},
	} {
		m, err := oldest(logOfSegments{list: tc.list, at: Mark{Position: Position{Segment: tc.head}, Commit: 14}})
		if err != nil || m.Segment != 1 || m.Commit != tc.commit || m.Total != tc.total {
			t.Errorf("%s: begins at %+v, %v; want behind commit %d and %d samples, in segment 1", name, m, err, tc.commit, tc.total)
		}
	}
}

// repeated is a log whose second segment repeats all commits of the first, and has one more.
type repeated struct {
	segments [2]*segmenttest.Builder
	samples  uint64 // per commit
}

func newRepeated(commits int, samples int) repeated {
	r := repeated{samples: uint64(samples)}
	for n := range r.segments {
		s := segmenttest.New(n, ID{9}, 0, 0)
		if n == 1 {
			s.Header.Relogged = uint64(commits)
		}
		for i := range commits + n {
			var recs [][]byte
			if i == 0 {
				recs = append(recs, segmenttest.Series(segmenttest.Refs(1, samples+1)...))
			}
			s.Commit(r.samples, int64(i+1), int64(i+1), append(recs, segmenttest.Samples(int64(i+1), segmenttest.Refs(1, samples+1)...))...)
		}
		r.segments[n] = s
	}
	return r
}

// damage flips a byte of a commit, counted from 1, in the n-th segment.
func (r repeated) damage(n, commit int) { r.segments[n].B[r.segments[n].Ends[commit-1]-40] ^= 0xff }

// The same holds if the header of the oldest segment and its first commits are damaged.
func TestOldestBehindADamagedHeaderIsBeforeCommitsThatAreLoggedAgain(t *testing.T) {
	r := newRepeated(4, 2)
	r.segments[0].B[10] ^= 0xff
	r.damage(0, 1)
	r.damage(0, 2)
	m, err := oldest(newFakeLog(r.segments[0], r.segments[1]))
	if err != nil || m.Segment != 0 || m.Commit != 0 || m.Total != 0 {
		t.Errorf("begins at %+v, %v", m, err)
	}
}

// A target that cannot be placed is not made.
func TestOldestRefusesATarget(t *testing.T) {
	l := newPlan(2, 2, 6).log()
	l.files[0][10] ^= 0xff
	l.openErr = errDisk
	ts := memTargets(t, newMemDir(), targetsOptions{})
	if _, err := ts.open(l, "a", ReaderOptions{StartAt: StartOldest}); !errors.Is(err, errDisk) || ts.get("a") != nil {
		t.Errorf("opened: %v", err)
	}
}
