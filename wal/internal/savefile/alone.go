package savefile

import (
	"fmt"
	"os"

	"hwsagent/wal/internal/disk"
)

// maxAlone is the number of records between two flushes, about a second, up to which each is written alone. A page of the
// page cache has eight cells, so for more records than that the page cache writes less.
const maxAlone = 8

// alone writes single records past the page cache. A record takes a sector of 512 bytes, but from the page cache the kernel
// writes pages of 4 KiB, which is eight times the bytes of a single record.
//
// A direct write runs in its own goroutine, because it waits for the disk, and the callers of Write must not wait. Records that are
// written meanwhile are queued. So a kill loses a record only if it comes during a direct write.
//
// Invariant: no direct write begins while the active file has a dirty page, and no other write to that file begins before
// the direct one has ended. File systems differ in how they treat both kinds of writes to one page at a time.
// Invariant: no round runs while busy is true.
type alone struct {
	files   [2]disk.File // opened with disk.Direct; nil: not open, or refused
	refused bool         // an open or a write failed: this store does not try again
	records int          // since the last flush
	dirty   bool         // records in the page cache may not be on the disk

	busy   bool   // a direct write is under way
	sector []byte // its bytes
	queue  []byte // records for the cells behind it
}

// open opens the i-th file, which f is, for direct writes. The directory may have another file of that name by now: then, and
// where the file system has no direct writes, all records go through the page cache.
func (a *alone) open(dir Directory, i int, f disk.File) {
	if a.refused || disk.Direct == 0 {
		return
	}
	d, err := dir.Open(names[i], os.O_WRONLY|disk.Direct)
	if err != nil {
		a.refused = true
		return
	}
	_, err = dir.Look(names[i], f)
	if err == nil {
		_, err = dir.Look(names[i], d)
	}
	if err != nil {
		_ = d.Close() // nothing was written to it
		return
	}
	if a.files[i] = d; a.sector == nil {
		a.sector = disk.Aligned(cellSize)
	}
}

// close closes the i-th file. All that was written to it is written, so an error has no meaning.
func (a *alone) close(i int) {
	if a.files[i] != nil {
		_ = a.files[i].Close()
		a.files[i] = nil
	}
}

// writeLocked writes the cells of a record to the active file at an offset, alone if mayAlone is true and that is possible. If it is written alone, or
// queued behind such a record, it reaches the file after writeLocked has returned. The error is that of the page cache.
func (s *Store) writeLocked(at int64, mayAlone bool) error {
	a := &s.alone
	a.records++
	switch {
	case a.busy:
		a.queue = append(a.queue, s.cells...)
		return nil
	case mayAlone && a.files[s.active] != nil && !a.dirty && a.records <= maxAlone && len(s.cells) == cellSize && s.began == s.ended && s.settling == 0:
		copy(a.sector, s.cells)
		a.busy = true
		go s.writeAlone(s.active, at)
		return nil
	}
	a.dirty = true
	_, err := s.files[s.active].WriteAt(s.cells, at)
	return err
}

// writeAlone writes the sector directly to the i-th file, and then what was queued meanwhile.
func (s *Store) writeAlone(i int, at int64) {
	a := &s.alone
	_, err := a.files[i].WriteAt(a.sector, at) // nothing changes files[i] and sector while busy is true
	s.mu.Lock()
	defer s.mu.Unlock()
	rest, from := a.queue, at+cellSize
	if err != nil { // the page cache may take it
		a.close(i)
		a.refused = true
		rest, from = append(a.sector[:cellSize:cellSize], a.queue...), at
	}
	if len(rest) > 0 {
		a.dirty = true
		if _, err := s.files[i].WriteAt(rest, from); err != nil {
			s.distrustLocked(fmt.Errorf("write: %w", err))
			t := &s.traces[i]
			t.last, t.at = t.first, 0 // the last record is not there
		}
	}
	a.queue = a.queue[:0]
	a.busy = false
	s.cond.Broadcast()
}
