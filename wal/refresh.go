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

// What an earlier process wrote can be read, and may still not be durable: the process was killed before its fsync, or after one
// that had failed. In the second case no later fsync helps, because the system may have dropped the data that it could not write.
// So a start writes those bytes again, in their place, before it counts them as durable. The rules:
//
//   - Savepoints know a commit up to which the log was durable. A start writes only what lies behind that commit, which is the work
//     of a few seconds. If savepoints say nothing, it writes the two segments that may have waited for an fsync: the newest one
//     with a commit, and the one before. A segment without a commit is synced with them: its header may say where the
//     segment before it ends, and without that header failed commits would come back.
//   - The bytes do not change, so a sector that is durable already stays as it is, also if the power fails meanwhile.
//   - If the disk refuses to write them, the log opens all the same, and tries again each second. Until that succeeds,
//     savepoints do not learn that anything more is durable, so the next start tries it, too.

// refresh makes the newest segments durable. Everything up to the mark known is durable already.
func (l *Log) refresh(newest []segment.Info, known Mark) {
	newest = slices.Clone(newest)
	l.refreshAgain = func() error { return l.tryRefresh(newest, known) }
	l.retryRefresh()
}

// retryRefresh does so if it has not succeeded yet.
func (l *Log) retryRefresh() {
	if l.refreshAgain == nil {
		return
	}
	err := l.refreshAgain()
	l.budget.note("make the newest segments durable", err)
	if err == nil {
		l.refreshAgain = nil
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

// durable is the last commit that a power cut cannot take, for savepoints to keep. It is the zero Mark while an earlier commit may
// not be durable.
func (l *Log) durable() Mark {
	if l.refreshAgain != nil {
		return Mark{}
	}
	return l.index.durable()
}
