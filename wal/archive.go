package wal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
)

// Archive reads what a log had when it was opened, commit by commit, for somebody who has
// no place in it. It changes nothing, needs no lock and works beside the process that has
// the log open; a segment which that one lets go before it is read is left out. It is not
// safe for concurrent use.
type Archive struct {
	segments directory
	tail     *archiveTail
	cursor   *cursor
	total    int64 // bytes of all segments
	within   bool  // the first entry is not the log's: what is missing in front of it is not known
}

// OpenArchive opens the log in dir for reading, from the first commit with a number above
// after that is still there.
func OpenArchive(dir string, after uint64) (*Archive, error) {
	segments, err := openExisting(filepath.Join(dir, segmentDir))
	if err != nil {
		return nil, fmt.Errorf("open log for reading: %w", err)
	}
	a := &Archive{segments: segments}
	saves, err := openExisting(filepath.Join(dir, savepointDir))
	if err == nil {
		err = errors.Join(a.open(saves, after), saves.close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open log for reading: %w", err), segments.close())
	}
	return a, nil
}

func (a *Archive) open(saves directory, after uint64) error {
	var in Inspection
	stored, err := in.readTargets(saves)
	if err != nil {
		return err
	}
	l, err := listSegments(a.segments)
	if err != nil {
		return err
	}
	a.tail = &archiveTail{fileTail: l, series: newSeriesPool(nil)}
	id, err := l.log(stored)
	if err != nil {
		return err
	}
	if err := a.tail.find(id); err != nil {
		return err
	}
	for _, ref := range l.refs {
		a.total += ref.Size
	}
	a.cursor = newCursor(a.tail, slog.New(slog.DiscardHandler)) // damage is told by who delivers
	start, err := oldest(a.tail)
	if err != nil {
		return err
	}
	if after > start.Commit {
		start.Commit, start.SegmentID, a.within = after, ID{}, true // where that is, headers tell
	}
	a.cursor.place(start, Mark{})
	return nil
}

// Next returns the next commit; the entry is valid until the following call. The error is
// io.EOF behind the last one, or the disk's.
func (a *Archive) Next() (*Entry, error) {
	e, err := a.cursor.next(a.tail.mark)
	switch {
	case err != nil:
		return nil, err
	case e == nil:
		return nil, io.EOF
	case a.within:
		e.Missing, a.within = Outcome{}, false
	}
	return e, nil
}

// Progress is how many bytes of how many have been read, as far as segments tell.
func (a *Archive) Progress() (read, total int64) {
	for _, ref := range a.tail.refs {
		switch {
		case ref.Number < a.cursor.want:
			read += ref.Size
		case ref.Number == a.cursor.want && a.cursor.file != nil:
			read += min(ref.Size, a.cursor.reader.offset())
		}
	}
	return read, a.total
}

// Head is the mark of the last commit.
func (a *Archive) Head() Mark { return a.tail.mark }

// Skipped is what could not be read: bytes of damage in the segments that are finished, and
// segments that were missing.
func (a *Archive) Skipped() (bytes, segments int64) {
	return a.cursor.damaged.Load(), a.cursor.holes.Load()
}

// Close closes the files.
func (a *Archive) Close() error {
	a.cursor.release()
	return a.segments.close()
}

// archiveTail is the files of a log as a cursor sees it, with an end that stays.
type archiveTail struct {
	*fileTail
	mark   Mark
	series *seriesPool
}

// find finds where the log of that ID ends, and what its segments say of each other. The error
// is the disk's.
func (l *archiveTail) find(log ID) error {
	for i := range l.refs {
		l.seal(i)
	}
	var later segmentRef
	for i := range slices.Backward(l.refs) {
		ref := &l.refs[i]
		ref.Before, ref.Next = later.Before, later.Next
		if h, err := readHeader(l, *ref); err == nil && h.names(log, ref.Number) {
			later.follows(h.Commit)
		}
	}
	scan := segmentScanner{decode: newEntryDecoder(newSeriesPool(nil))}
	for i := len(l.refs) - 1; i >= 0 && l.mark.Commit == 0; i-- {
		ref := l.refs[i]
		if scan.inspect(l.fileTail, ref, i == len(l.refs)-1); scan.err != nil {
			return fmt.Errorf("scan segment %08d: %w", ref.Number, scan.err)
		}
		if h := scan.info.Header; h.Version != 0 && h.Log != log || scan.info.Last.Commit == 0 {
			continue
		}
		l.mark = scan.info.Last
		l.mark.Position = Position{Segment: ref.Number, Offset: scan.info.End}
	}
	l.mark.Log = log
	return nil
}

func (l *archiveTail) head() Mark                       { return l.mark }
func (l *archiveTail) segments() []segmentRef           { return l.refs }
func (l *archiveTail) pool() *seriesPool                { return l.series }
func (l *archiveTail) wait(context.Context, Mark) error { return ErrClosed }

func (l *archiveTail) first() int {
	if len(l.refs) == 0 {
		return 0
	}
	return l.refs[0].Number
}
