package wal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"hwsagent/wal/internal/disk"
	"hwsagent/wal/internal/savefile"
	"hwsagent/wal/internal/segment"
	"hwsagent/wal/queue"
)

// Inspection is the result of reading the files of a log.
type Inspection struct {
	Dir      string              `json:"dir"`
	Log      ID                  `json:"log"`  // zero if no segment header is readable
	Head     Mark                `json:"head"` // the last readable commit
	Segments []SegmentInspection `json:"segments"`
	Targets  []TargetInspection  `json:"targets"` // ordered by name

	// Problem describes the possible effect of damage to the savepoints; empty without damage.
	Problem string `json:"savepoints_problem,omitempty"`
}

// SegmentInspection describes one segment.
type SegmentInspection struct {
	Number   int       `json:"number"`
	Bytes    int64     `json:"bytes"`
	Commits  int       `json:"commits"`
	Samples  uint64    `json:"samples"`
	Series   int       `json:"series"`         // label sets announced
	From     time.Time `json:"from,omitzero"`  // timestamp of the oldest sample
	To       time.Time `json:"to,omitzero"`    // and of the newest
	Damaged  int64     `json:"damaged_bytes"`  // bytes that cannot be read
	Broken   int       `json:"broken_commits"` // unreadable commits, as far as is known
	NeededBy []string  `json:"needed_by"`      // targets that have not acknowledged all of it
	Problem  string    `json:"problem,omitempty"`
}

// TargetInspection is the ledger of one target, in samples unless noted.
type TargetInspection struct {
	Name         string            `json:"name"`
	Acked        Position          `json:"acked"`
	High         Position          `json:"high"` // the furthest that may have been sent
	Appended     uint64            `json:"appended"`
	Delivered    uint64            `json:"delivered"`
	Filtered     uint64            `json:"filtered"`
	Dropped      map[string]uint64 `json:"dropped"` // by reason; reasons with none are left out
	Pending      uint64            `json:"pending"`
	PendingBytes int64             `json:"pending_bytes"`
	Oldest       time.Time         `json:"oldest_pending,omitzero"` // timestamp of the oldest pending sample
	Balanced     bool              `json:"balanced"`                // whether the ledger adds up
	LastOpen     time.Time         `json:"last_open,omitzero"`
	PausedSince  time.Time         `json:"paused_since,omitzero"`
	Problem      string            `json:"problem,omitempty"`
}

// Progress is called after each segment with the bytes read so far and the total bytes.
type Progress func(read, total int64)

// Inspect reads the log in dir without changing it. It takes no lock and works while
// another process has the log open; the result may or may not include concurrent
// writes. Damage is part of the result, not an error. Inspect reads the whole log,
// about as fast as the disk allows, and needs the memory of one segment.
func Inspect(dir string, progress ...Progress) (Inspection, error) {
	return inspect(dir, func(in *Inspection, l *fileTail) { in.scanAll(l, progress) })
}

// Glance is a fast [Inspect]: for segments it returns only numbers, sizes and the targets
// that need them. It reads whole only the segments with the end of the log and with the
// position of each target, and the first page of the others.
func Glance(dir string) (Inspection, error) {
	return inspect(dir, (*Inspection).scanEnd)
}

// FreeBytes returns how much an unprivileged process may still write to the file system of path.
func FreeBytes(path string) (int64, error) { return disk.FreeSpace(path) }

// inspect implements Inspect and Glance; scan reads the segments.
func inspect(dir string, scan func(*Inspection, *fileTail)) (Inspection, error) {
	in := Inspection{Dir: dir}
	segments, err := disk.OpenExisting(filepath.Join(dir, segmentDir))
	if err != nil {
		return in, fmt.Errorf("inspect log: %w", err)
	}
	defer segments.Close()
	saves, err := disk.OpenExisting(filepath.Join(dir, savepointDir))
	if err != nil {
		return in, fmt.Errorf("inspect savepoints: %w", err)
	}
	defer saves.Close()
	err = in.read(segments, saves, scan)
	return in, err
}

// read fills in the result from savepoints and segments.
func (in *Inspection) read(segments, saves disk.Directory, scan func(*Inspection, *fileTail)) error {
	// Read savepoints first, because a running log only advances.
	stored, err := in.readTargets(saves)
	if err != nil {
		return err
	}
	l, err := listFiles(segments)
	if err != nil {
		return err
	}
	_ = l.catalogue(stored) // the scan meets the same error and reports it
	in.Log = l.log
	scan(in, l)
	in.Head.Log = in.Log // a damaged segment has no header
	in.account(stored, l.list)
	for i := range in.Targets {
		if t := &in.Targets[i]; t.Pending > 0 {
			sp := stored[t.Name]
			t.Oldest = l.oldestAfter(sp.Acked())
		}
	}
	return nil
}

// oldestAfter is the timestamp of the oldest sample in the first commit with samples
// after acked; the zero time if there is none.
func (l *fileTail) oldestAfter(acked Mark) time.Time {
	for i := range l.list {
		s := &l.list[i]
		if s.Number < acked.Segment || s.Foreign {
			continue
		}
		if t, ok := l.firstAfter(s, acked.Commit); ok {
			return t
		}
	}
	return time.Time{}
}

// firstAfter is the oldest timestamp in the first commit of a segment with samples and a
// number above commit.
func (l *fileTail) firstAfter(s *segment.Info, commit uint64) (time.Time, bool) {
	f, err := l.openSegment(s.Number)
	if err != nil {
		return time.Time{}, false // the segment was removed meanwhile, or its Problem has the reason
	}
	defer f.Close()
	var c segment.Reader
	c.Reset(f, s.Number, s.End, true)
	for {
		found, err := c.Next()
		switch {
		case err != nil || found == segment.FoundNothing:
			return time.Time{}, false
		case found == segment.FoundCommit && c.Commit.Number > commit && c.Commit.Samples > 0:
			return time.UnixMilli(c.Commit.MinT), true
		}
	}
}

// readTargets reads all savepoints.
func (in *Inspection) readTargets(dir disk.Directory) (map[string]queue.Savepoint, error) {
	var saved savefile.Saved
	for range segment.ScanTries { // a running agent may be in the middle of a write
		var err error
		saved, err = savefile.Read(dir, slog.New(slog.DiscardHandler))
		if format := (*savefile.FormatError)(nil); errors.As(err, &format) {
			in.Problem = err.Error()
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if saved.Bad == 0 {
			break
		}
	}
	if saved.Log.Lost {
		in.Problem = "savepoints are damaged: targets may get some samples twice"
	}
	stored := map[string]queue.Savepoint{}
	for _, name := range slices.Sorted(maps.Keys(saved.Targets)) {
		st, err := queue.DecodeSavepoint(saved.Targets[name])
		if err != nil {
			in.Problem = fmt.Sprintf("savepoint of target %q: %v", name, err)
			continue
		}
		stored[name] = st.Savepoint
		t := TargetInspection{Name: name, LastOpen: time.UnixMilli(st.LastOpen), PausedSince: st.PausedSince()}
		if saved.Bad > 0 {
			t.Problem = "a newer savepoint may be unreadable: the target may get some samples twice"
		}
		in.Targets = append(in.Targets, t)
	}
	return stored, nil
}

// scanAll reads all segments.
func (in *Inspection) scanAll(l *fileTail, progress []Progress) {
	var read, total int64
	for i := range l.list {
		total += l.list[i].End
	}
	scan := newSegmentScanner()
	for i := range l.list {
		seg := &l.list[i]
		s, ok := scan.inspect(l, seg, i == len(l.list)-1)
		read += seg.End
		for _, tell := range progress {
			if tell != nil {
				tell(read, total)
			}
		}
		if !ok {
			continue // unlinked meanwhile
		}
		if seg.Foreign {
			s.Problem = "it belongs to another log, and is left out"
		} else if last := scan.info.Last; last.Commit > in.Head.Commit {
			in.Head = last
		}
		in.Segments = append(in.Segments, s)
	}
}

// scanEnd reads the newest segments, back to one with a commit.
func (in *Inspection) scanEnd(l *fileTail) {
	_ = l.findHead() // unreadable parts count as damage
	in.Head = l.mark
	for i := range l.list {
		in.Segments = append(in.Segments, SegmentInspection{Number: l.list[i].Number, Bytes: l.list[i].End})
	}
}

// segmentScanner inspects segments one after another.
type segmentScanner struct {
	reader segment.Reader
	decode *entryDecoder
	info   segment.Contents // of the last segment inspected
	err    error            // why it could not be read, other than damage
}

func newSegmentScanner() *segmentScanner {
	return &segmentScanner{decode: newEntryDecoder(newSeriesMap())}
}

// inspect scans a segment. Another process may be writing the end of the newest one, so a
// torn commit there is not damage.
func (sc *segmentScanner) inspect(l *fileTail, seg *segment.Info, newest bool) (s SegmentInspection, ok bool) {
	s = SegmentInspection{Number: seg.Number, Bytes: seg.End}
	sc.info, sc.err = segment.Contents{}, nil
	f, err := l.openSegment(seg.Number)
	if errors.Is(err, fs.ErrNotExist) {
		return s, false
	}
	if err != nil {
		s.Problem, sc.err = err.Error(), err
		return s, true
	}
	defer f.Close()
	sc.decode.series.turn()
	sc.reader.Reset(f, seg.Number, seg.End, true)
	sc.info, err = sc.reader.Scan(func(rec []byte) { _ = sc.decode.learn(rec) })
	if err == nil && newest && sc.info.Refused == nil && sc.info.Damaged > 0 {
		sc.reader.Reset(f, seg.Number, sc.info.End, true)
		sc.info, err = sc.reader.Scan(nil)
	}
	if sc.err = cmp.Or(err, sc.info.Refused); sc.err != nil {
		s.Problem = sc.err.Error()
	} else if sc.info.Header.Version == 0 {
		s.Problem = "header is unreadable"
	}
	s.Commits, s.Samples, s.Series = sc.info.Commits, sc.info.Samples, sc.decode.series.refs[0].Len()
	s.Damaged, s.Broken = sc.info.Damaged, sc.info.Broken
	if sc.info.Samples > 0 {
		s.From, s.To = time.UnixMilli(sc.info.MinT), time.UnixMilli(sc.info.MaxT)
	}
	return s, true
}

// account fills in the fields that need both savepoints and segments.
func (in *Inspection) account(stored map[string]queue.Savepoint, segments []segment.Info) {
	for i := range in.Targets {
		t := &in.Targets[i]
		sp, known := stored[t.Name]
		if known && in.Log != (ID{}) && sp.Start.Log != in.Log {
			t.Problem = "savepoint belongs to another log: the target will get everything that this one has"
			known = false
		}
		acked := sp.Acked()
		for j := range in.Segments {
			s := &in.Segments[j]
			if !known || acked.Segment < s.Number || acked.Segment == s.Number && acked.Offset < s.Bytes && acked.Commit < in.Head.Commit {
				s.NeededBy = append(s.NeededBy, t.Name)
			}
		}
		if !known {
			continue
		}
		l := sp.Ledger(in.Head)
		t.Acked, t.High = acked.Position, sp.High.Position
		t.Appended, t.Delivered, t.Filtered, t.Pending = l.Appended, l.Delivered, l.Filtered, l.Pending
		t.PendingBytes, t.Balanced = sp.PendingBytes(segments, in.Head), l.Balanced()
		t.Dropped = map[string]uint64{}
		for r, n := range l.Dropped {
			if n > 0 {
				t.Dropped[queue.Reason(r).String()] = n
			}
		}
	}
}
