package wal

import (
	"errors"
	"os"
	"slices"
)

// fileTail lists and opens the segments of a log that this process does not own.
type fileTail struct {
	dir  directory
	refs []segmentRef
}

func (l *fileTail) openSegment(n int) (segmentFile, error) {
	return l.dir.open(segmentName(n), os.O_RDONLY)
}

// log is the ID of the log that the segments are of, going by their headers and by the
// savepoints. If no header says so, the error is what kept them from being read.
func (l *fileTail) log(stored map[string]Savepoint) (ID, error) {
	headers := make([]Header, len(l.refs))
	var errs []error
	for i, ref := range l.refs {
		h, err := readHeader(l, ref)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		headers[i] = h
	}
	id := ownLog(headers, func(id ID) bool {
		for _, sp := range stored {
			if sp.Start.Log == id {
				return true
			}
		}
		return false
	})
	if slices.ContainsFunc(headers, func(h Header) bool { return h.Version != 0 && h.Log == id }) {
		return id, nil
	}
	return id, errors.Join(errs...)
}

// seal shortens the segment before the i-th if the i-th one's header says where it ends.
func (l *fileTail) seal(i int) {
	if i == 0 || l.refs[i-1].Number != l.refs[i].Number-1 {
		return
	}
	h, err := readHeader(l, l.refs[i])
	if err != nil || h.Number != l.refs[i].Number || h.PrevID == (ID{}) {
		return // the scan meets the error again, and reports it
	}
	// A header that cannot be read says nothing against being the one that is meant.
	if prev, err := readHeader(l, l.refs[i-1]); err == nil && prev.Version != 0 && prev.Segment != h.PrevID {
		l.refs[i-1].Size = 0
		return
	}
	l.refs[i-1].Size = min(l.refs[i-1].Size, h.PrevEnd)
}
