package savefile

import (
	"errors"
	"fmt"
	"os"

	"hwsagent/wal/internal/disk"
)

// rewriteLocked writes a snapshot to the inactive file, which then becomes the active one. It releases mu while it waits
// for the disk; meanwhile records are appended to the active file if it has room. grew means that the inactive file became
// longer.
func (s *Store) rewriteLocked() (grew bool, err error) {
	to := 1 - s.active
	s.tried++
	snapshot, begins, credits := s.snapshotLocked()
	through, size := s.sequence, s.sizes[to]
	s.unsynced = nil
	s.mu.Unlock()
	if s.unsure {
		err = refreshFile(s.dir, names[s.active], s.sizes[s.active])
	}
	if err == nil {
		size, err = s.replace(to, size, snapshot)
	}
	s.mu.Lock()
	grew, s.sizes[to] = size > s.sizes[to], size
	if err != nil {
		s.compact = true // the records appended before are not durable
		return grew, fmt.Errorf("write savepoints: %w", err)
	}
	if s.unsure && !s.harmed {
		s.blank[1-to] = false // the file has been refreshed
	}
	s.unsure, s.harmed = false, false
	s.active, s.generation, s.synced, s.compact, s.blank[to] = to, begins.generation, through, false, false
	s.used, s.durable = int64(len(snapshot)), int64(len(snapshot))
	for _, c := range credits {
		c.t.RelyOn(c.acked)
	}
	for _, c := range s.unsynced {
		c.t.Unwritten() // its record is only in the other file
	}
	s.unsynced = nil
	s.logOld = true // a record after the snapshot proves that it is durable
	s.putAllLocked(false)
	return grew, nil
}

// snapshotLocked encodes all records, and marks them as written. begins is the identity of the first.
func (s *Store) snapshotLocked() (b []byte, begins identity, credits []credit) {
	type record struct {
		identity
		payload []byte
	}
	var records []record
	cells := 0
	add := func(kind recordKind, payload []byte) {
		s.sequence++
		cells += cellsFor(len(payload))
		records = append(records, record{identity{kind, true, s.tried, s.sequence}, payload})
	}
	add(kindLog, appendLog(nil, s.log))
	s.logOld, s.grown, s.single = false, false, false
	for t := range s.all {
		if payload, c, ok := t.Encode(appendText(nil, t.Name()), true); ok {
			add(kindTarget, payload)
			credits = append(credits, credit{t, c.Acked})
		}
	}
	for _, r := range records {
		b = appendRecord(b, r.identity, cells, r.payload)
	}
	return b, records[0].identity, credits
}

// replace durably writes a snapshot to the beginning of a file, and extends the file for later records if the disk has room. It
// returns the size of the file.
func (s *Store) replace(to int, size int64, snapshot []byte) (int64, error) {
	if s.files[to] == nil {
		flag := os.O_RDWR
		if size == 0 {
			flag |= os.O_CREATE | os.O_TRUNC // this process did not write an existing file
		}
		f, err := s.dir.Open(names[to], flag)
		if err != nil {
			return size, err
		}
		s.files[to] = f
	}
	f := s.files[to]
	size, err := growFile(f, size, capacity(int64(len(snapshot))))
	if size >= int64(len(snapshot)) { // otherwise err has the reason
		if _, err = f.WriteAt(snapshot, 0); err == nil {
			err = f.Sync()
		}
		uncache(f)
	}
	if err == nil && s.blank[to] {
		err = s.dir.Sync()
	}
	if err != nil {
		err = errors.Join(err, f.Close())
		s.files[to] = nil // use a new descriptor next time
	}
	return size, err
}

// growFile durably gives a file that is about to be overwritten a size that wholeLength accepts: want, filled with zeros, or a smaller
// one if the disk refuses that. It returns the size.
func growFile(f disk.File, size, want int64) (int64, error) {
	if size > 0 && !wholeLength(size) { // a power cut interrupted an earlier growth
		whole := int64(minFile)
		for 2*whole <= size {
			whole *= 2
		}
		if whole > size {
			whole = 0
		}
		if err := f.Truncate(whole); err != nil {
			return size, err
		}
		size = whole
	}
	if want <= size {
		return size, nil
	}
	zeros := make([]byte, minFile)
	for at := size; at < want; at += minFile {
		if _, err := f.WriteAt(zeros, at); err != nil {
			return size, errors.Join(err, f.Truncate(size)) // a file of another size would look truncated
		}
	}
	if err := f.Sync(); err != nil {
		return size, errors.Join(err, f.Truncate(size))
	}
	return want, nil
}
