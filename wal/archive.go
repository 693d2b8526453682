package wal

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"

	"hwsagent/wal/internal/disk"
)

// Archive reads what a log had when it was opened, commit by commit, for somebody who has
// no place in it. It changes nothing, needs no lock and works beside the process that has
// the log open; a segment which that one lets go before it is read is left out. It is not
// safe for concurrent use.
type Archive struct {
	segments disk.Directory
	tail     *fileTail
	cursor   *cursor
	total    int64 // bytes of all segments
	within   bool  // the first entry is not the log's: what is missing in front of it is not known
}

// OpenArchive opens the log in dir for reading, from the first commit with a number above
// after that is still there.
func OpenArchive(dir string, after uint64) (*Archive, error) {
	segments, err := disk.OpenExisting(filepath.Join(dir, segmentDir))
	if err != nil {
		return nil, fmt.Errorf("open log for reading: %w", err)
	}
	a := &Archive{segments: segments}
	saves, err := disk.OpenExisting(filepath.Join(dir, savepointDir))
	if err == nil {
		err = errors.Join(a.open(saves, after), saves.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open log for reading: %w", err), segments.Close())
	}
	return a, nil
}

func (a *Archive) open(saves disk.Directory, after uint64) error {
	var in Inspection
	stored, err := in.readTargets(saves)
	if err != nil {
		return err
	}
	if a.tail, err = listFiles(a.segments); err != nil {
		return err
	}
	if err := a.tail.catalogue(stored); err != nil {
		return err
	}
	if err := a.tail.findHead(); err != nil {
		return err
	}
	for _, s := range a.tail.list {
		a.total += s.End
	}
	a.cursor = newCursor(a.tail, slog.New(slog.DiscardHandler)) // the cursor that delivers reports damage
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
	for _, s := range a.tail.list {
		switch {
		case s.Number < a.cursor.want:
			read += s.End
		case s.Number == a.cursor.want && a.cursor.file != nil:
			read += min(s.End, a.cursor.reader.Offset())
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
	return a.segments.Close()
}
