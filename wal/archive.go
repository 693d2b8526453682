package wal

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"

	"hwsagent/wal/internal/disk"
	"hwsagent/wal/queue"
)

// Archive reads the commits that a log had when OpenArchive was called, without being a target
// of it. It is read-only, takes no lock and works while another process has the log open; it
// skips segments that the other process removes before they are read. It is not safe for
// concurrent use.
type Archive struct {
	segments disk.Directory
	tail     *fileTail
	cursor   *cursor
	found    *findings
	total    int64 // bytes of all segments
	within   bool  // reading begins inside the log: Missing of the first entry is unknown
}

// OpenArchive opens the log in dir for reading, from the first remaining commit with a number
// above after.
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
	silent := slog.New(slog.DiscardHandler) // the cursors that deliver report damage
	a.found = newFindings(silent)
	a.cursor = newCursor(a.tail, silent, a.found)
	start, err := oldest(a.tail)
	if err != nil {
		return err
	}
	if after > start.Commit {
		start.Commit, start.SegmentID, a.within = after, ID{}, true // place finds the segment by the headers
	}
	a.cursor.place(start, Mark{})
	return nil
}

// Next returns the next commit; the entry is valid until the following call. The error is
// io.EOF after the last commit, or that of the disk.
func (a *Archive) Next() (*Entry, error) {
	e, err := a.cursor.next(a.tail.mark)
	switch {
	case err != nil:
		return nil, err
	case e == nil:
		return nil, io.EOF
	case a.within:
		e.Missing, a.within = queue.Outcome{}, false
	}
	return e, nil
}

// Progress returns the bytes read so far and the total bytes, from the sizes of the segments.
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

// Skipped counts unreadable data: bytes of damage in the segments read to their end, and
// missing segments.
func (a *Archive) Skipped() (bytes, segments int64) {
	return a.found.damaged.Load(), a.found.holes.Load()
}

// Close closes the files.
func (a *Archive) Close() error {
	a.cursor.release()
	return a.segments.Close()
}
