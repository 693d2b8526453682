package wal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"hwsagent/wal/internal/disk"
	"hwsagent/wal/internal/segment"
	"hwsagent/wal/queue"
)

// fileTail is a tail of a log that this process does not own, with the segments that listFiles found.
type fileTail struct {
	dir  disk.Directory
	list []segment.Info
	log  ID
	mark Mark // of the last commit, as findHead found it

	series *seriesMap
}

// listFiles lists the segments in dir.
func listFiles(dir disk.Directory) (*fileTail, error) {
	infos, err := dir.List()
	if err != nil {
		return nil, fmt.Errorf("list segments: %w", err)
	}
	l := &fileTail{dir: dir, series: newSeriesMap()}
	for _, info := range infos {
		if n, ok := segment.ParseName(info.Name); ok {
			l.list = append(l.list, segment.Info{Number: n, Size: info.Size})
		}
	}
	slices.SortFunc(l.list, func(a, b segment.Info) int { return cmp.Compare(a.Number, b.Number) })
	return l, nil
}

// catalogue reads the headers and determines the log of the segments from them and the savepoints.
// If it finds no log, the error has the reasons why headers could not be read.
func (l *fileTail) catalogue(stored map[string]queue.Savepoint) error {
	var errs []error
	var c segment.Reader
	for i := range l.list {
		h, err := readHeader(&c, l, l.list[i].Number, l.list[i].Size)
		errs = append(errs, err)
		l.list[i].Header = h
	}
	l.log = segment.Catalogue(l.list, func(id ID) bool {
		for _, sp := range stored {
			if sp.Start.Log == id {
				return true
			}
		}
		return false
	})
	for i := range l.list {
		if s := &l.list[i]; s.Foreign {
			s.End = s.Size // an inspection reads foreign segments, too
		}
	}
	l.mark.Log = l.log
	if slices.ContainsFunc(l.list, func(s segment.Info) bool { return s.Known() }) {
		return nil
	}
	return errors.Join(errs...)
}

// findHead finds the end of the log. The error is that of the disk.
func (l *fileTail) findHead() error {
	scan := newSegmentScanner()
	var errs []error
	for i, s := range slices.Backward(l.list) {
		_, _ = scan.inspect(l, &s, i == len(l.list)-1)
		if scan.err != nil {
			errs = append(errs, fmt.Errorf("scan segment %s: %w", segment.Name(s.Number), scan.err))
		}
		if last := scan.info.Last; last.Commit > 0 && !s.Foreign {
			l.mark = last
			break
		}
	}
	l.mark.Log = l.log // a damaged segment has no header
	return errors.Join(errs...)
}

func (l *fileTail) openSegment(n int) (segmentFile, error) {
	return l.dir.Open(segment.Name(n), os.O_RDONLY)
}

func (l *fileTail) head() Mark                       { return l.mark }
func (l *fileTail) safe() Mark                       { return l.mark }
func (l *fileTail) segments() []segment.Info         { return l.list }
func (l *fileTail) allSeries() *seriesMap            { return l.series }
func (l *fileTail) wait(context.Context, Mark) error { return ErrClosed }
func (l *fileTail) broken() bool                     { return false } // nothing is written here
func (l *fileTail) isRefused(uint64) bool            { return false } // no process knows them any more

func (l *fileTail) first() int {
	if len(l.list) == 0 {
		return 0
	}
	return l.list[0].Number
}
