package wal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"hwsagent/wal/internal/segment"
	"hwsagent/wal/internal/segmenttest"
)

// fakeLog is a tail over segments in memory.
type fakeLog struct {
	mu      sync.Mutex
	files   map[int][]byte
	mark    Mark
	oldest  int
	changed chan struct{}
	openErr error // of the next opening
	readErr error // of all reads
	series  *seriesMap
	badPage int64 // number of a page of segment 1 that cannot be read; 0: none

	badReads int // how many reads of badPage fail; 0: all

	headers segment.Reader // reads them for segments
}

func newFakeLog(segments ...*segmenttest.Builder) *fakeLog {
	l := &fakeLog{files: map[int][]byte{}, changed: make(chan struct{}), series: newSeriesMap()}
	for _, s := range segments {
		l.put(s)
	}
	return l
}

// put shows what the segment holds so far; its last commit is the head.
func (l *fakeLog) put(s *segmenttest.Builder) {
	s.Start()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files[s.Header.Number] = bytes.Clone(s.B)
	l.mark = Mark{
		Position: Position{Segment: s.Header.Number, Offset: int64(len(s.B))},
		Log:      s.Header.Log, SegmentID: s.Header.Segment, Commit: s.Next.Number, Total: s.Next.Total,
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// unlink removes segments up to n, as the log does after dropThrough.
func (l *fakeLog) unlink(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.files, func(i int, _ []byte) bool { return i <= n })
	l.oldest = n + 1
}

func (l *fakeLog) safe() Mark { return l.head() }

func (l *fakeLog) head() Mark {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mark
}

func (l *fakeLog) first() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.oldest
}

func (l *fakeLog) wait(ctx context.Context, past Mark) error {
	for {
		l.mu.Lock()
		mark, changed := l.mark, l.changed
		l.mu.Unlock()
		if mark.Commit > past.Commit {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *fakeLog) segments() []segment.Info {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []segment.Info
	for _, n := range slices.Sorted(maps.Keys(l.files)) {
		l.headers.Reset(bytes.NewReader(l.files[n]), n, int64(min(len(l.files[n]), segment.PageSize)), true)
		_, _ = l.headers.Next()
		list = append(list, segment.Info{Number: n, Size: int64(len(l.files[n])), Header: l.headers.Header})
	}
	segment.Catalogue(list, func(id ID) bool { return id == l.mark.Log })
	return list
}

func (l *fakeLog) openSegment(n int) (segmentFile, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.openErr; err != nil {
		l.openErr = nil
		return nil, err
	}
	if _, ok := l.files[n]; !ok {
		return nil, fs.ErrNotExist
	}
	return &fakeFile{log: l, n: n, last: l.files[n]}, nil
}

// fakeFile reads what the log's segment holds at the time, also after it is unlinked.
type fakeFile struct {
	log  *fakeLog
	n    int
	last []byte
}

func (f *fakeFile) ReadAt(p []byte, off int64) (int, error) {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	if b, ok := f.log.files[f.n]; ok {
		f.last = b
	}
	if f.log.readErr != nil {
		return 0, f.log.readErr
	}
	if bad := f.log.badPage; bad > 0 && f.n == 1 && off/segment.PageSize == bad {
		if f.log.badReads--; f.log.badReads == 0 {
			f.log.badPage = 0
		}
		return 0, errDisk
	}
	if off > int64(len(f.last)) {
		return 0, io.EOF
	}
	n := copy(p, f.last[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *fakeFile) Close() error { return nil }

var errDisk = errors.New("input/output error")

func (l *fakeLog) broken() bool { return false }

func (l *fakeLog) isRefused(uint64) bool { return false }

func (l *fakeLog) allSeries() *seriesMap { return l.series }
