package wal

import (
	"errors"
	"io/fs"
	"testing"
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
