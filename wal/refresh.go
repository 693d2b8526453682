package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"hwsagent/wal/internal/savefile"
	"hwsagent/wal/internal/segment"
)

// What an earlier process has left may not be durable, though it can be read: the process was killed before its fsync, or
// after one that had failed. In the second case no fsync helps, since the system may have dropped what it could not write.
// So a start writes those bytes once more, in their place, before it counts them as durable. The rules:
//
//   - Commits up to the one that savepoints say was durable are left alone, so a start writes what came in a few
//     seconds. If savepoints say nothing, it writes all of the segments that may wait for an fsync, two at most: the
//     newest one with a commit, and the one before. A segment without a commit is synced with them: its header may say where
//     the one before it ends, and if a power cut took that, what failed would come back.
//   - The bytes are the same, so a sector that is durable already stays as it is, whatever happens meanwhile.
//   - If the disk refuses that, the log is opened all the same, and tries again each second. Until it succeeds, savepoints
//     do not learn that anything more is durable, so the next start tries it, too.

// refresh makes the newest segments durable, from what is known to be on.
func (l *Log) refresh(newest []segment.Info, known Mark) {
	newest = slices.Clone(newest)
	again := func() error { return l.tryRefresh(newest, known) }
	if err := again(); err != nil {
		l.budget.note("make the newest segments durable", err)
		l.refreshAgain = again
	}
}

// tryRefresh is one try of refresh.
func (l *Log) tryRefresh(newest []segment.Info, known Mark) error {
	var errs []error
	for i := range newest {
		s := &newest[i]
		from := int64(0)
		switch {
		case known.Segment > s.Number:
			from = s.End
		case s.Known() && s.Header.Segment == known.SegmentID:
			from = known.Offset
		}
		f, err := l.dir.Open(segment.Name(s.Number), os.O_RDWR)
		if errors.Is(err, fs.ErrNotExist) {
			continue // let go meanwhile
		}
		if err == nil {
			err = errors.Join(savefile.Refresh(f, from, s.End), f.Close())
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("segment %s: %w", segment.Name(s.Number), err))
		}
	}
	return errors.Join(append(errs, l.dir.Sync())...)
}

// retryRefresh tries that again if it has failed until now.
func (l *Log) retryRefresh() {
	if l.refreshAgain != nil && l.refreshAgain() == nil {
		l.refreshAgain = nil
		l.logger.Info("What the log had at the start is durable now")
	}
}

// durable is the last commit that a power cut cannot take, for savepoints to keep; the zero Mark while one before it may not be.
func (l *Log) durable() Mark {
	if l.refreshAgain != nil {
		return Mark{}
	}
	return l.index.durable()
}
