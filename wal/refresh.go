package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"hwsagent/wal/internal/savefile"
	"hwsagent/wal/internal/segment"
)

// Data of an earlier process may be readable but not durable: the process was killed before its fsync, or after a failed
// one. After a failed fsync no later fsync helps, because the kernel may have dropped the data that it could not write.
// So a start rewrites these bytes in place before it counts them as durable. The rules:
//
//   - Savepoints record a commit up to which the log was durable. A start rewrites only the bytes after that commit, which
//     are those of a few seconds. Without that record, it rewrites the two segments that may have waited for an fsync: the
//     newest one with a commit, and the one before. It goes further back if neither that record nor a header shows that the
//     earlier commits of these segments are durable, because the disk refused the writes of the last start.
//     It also syncs newer segments without a commit: their header may record the end of the previous segment, and failed
//     commits that were cut off them must not reappear, because new commits get their numbers.
//   - The bytes do not change, so durable sectors stay as they are even if the power fails meanwhile.
//   - The bytes stay in memory until that has succeeded, because a failed fsync may drop them from the file. Readers that find
//     damage behind the durable commit wait meanwhile (errNotDurable).
//   - If the disk refuses the writes, the log opens anyway, and retries each second. Until a try succeeds, savepoints
//     and headers (index.proven) record no further commits as durable, so the next start retries too.

// leftSegment is a segment that an earlier process left, with the bytes of it that may not be durable.
type leftSegment struct {
	number    int
	from, end int64
	bytes     savefile.Left // once they are read
}

// refresh makes the newest segments durable. All commits up to the mark known are durable already.
func (l *Log) refresh(newest []segment.Info, known Mark) {
	var left []leftSegment
	for _, s := range newest {
		from := int64(0)
		switch {
		case known.Segment > s.Number:
			from = s.End
		case s.Known() && s.Header.Segment == known.SegmentID:
			from = known.Offset
		}
		left = append(left, leftSegment{number: s.Number, from: from, end: s.End})
	}
	l.refreshAgain = func() error { return l.tryRefresh(&left) }
	_ = l.retryRefresh() // which logs the error
}

// retryRefresh tries refresh again if it has not succeeded yet.
func (l *Log) retryRefresh() error {
	if l.refreshAgain == nil {
		return nil
	}
	err := l.refreshAgain()
	l.budget.note("make the newest segments durable", err)
	if err == nil {
		l.refreshAgain = nil
		l.index.prove(nil)
	}
	return err
}

// tryRefresh is one try of refresh. It leaves in left the segments that the disk has refused.
func (l *Log) tryRefresh(left *[]leftSegment) error {
	var errs []error
	newest := *left
	*left = newest[:0]
	for _, s := range newest {
		f, err := l.dir.Open(segment.Name(s.number), os.O_RDWR)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err == nil {
			if s.bytes == nil {
				s.bytes = savefile.ReadLeft(f, s.from, s.end)
			}
			if err = s.bytes.Restore(f); err != nil {
				_ = s.bytes.Write(f) // after a kill, the next start must find what the failed fsync has dropped
			}
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			*left = append(*left, s)
			errs = append(errs, fmt.Errorf("segment %s: %w", segment.Name(s.number), err))
		}
	}
	return errors.Join(append(errs, l.dir.Sync())...)
}

// firstBehind returns the index of the first segment, up to the i-th, that may have commits after the durable one.
func (l *Log) firstBehind(i int, durable Mark) int {
	for ; i > 0; i-- {
		if s := &l.index.list[i]; s.Known() && s.Header.Commit <= durable.Commit {
			break
		}
	}
	return i
}

// durable returns the last durable commit, which savepoints record. It returns the zero Mark while refresh has not succeeded,
// because earlier commits may not be durable then.
func (l *Log) durable() Mark {
	if l.refreshAgain != nil {
		return Mark{}
	}
	return l.index.durable()
}
