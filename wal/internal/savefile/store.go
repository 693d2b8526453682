package savefile

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"hwsagent/wal/internal/disk"
	"hwsagent/wal/internal/segment"
)

// ErrClosed is the error of Sync, Flush and End on a closed store.
var ErrClosed = errors.New("log is closed")

// names are the names of the two files. Savepoint files of earlier formats have other names.
var names = [2]string{"records.0", "records.1"}

// Store keeps the newest record of each target in two files. The active file begins with a snapshot, to which records
// are appended. When three eighths of it are used, or after an error, a new snapshot is written to the other file, which
// then becomes the active one. So there is always one file with a durable snapshot, to which writes only append behind
// the durable records.
//
// Records survive a kill when Write or Put returns, and a power cut when Sync returns. All methods are safe for concurrent use.
//
// Invariant: records are appended to a file only after its snapshot is durable.
// Invariant: after an error, a file is neither appended to nor synced until it has a new snapshot.
type Store struct {
	dir    Directory
	logger *slog.Logger
	all    iter.Seq[Target] // ordered by name; called with mu held

	mu         sync.Mutex // guards the following fields; taken before a target's mutex; never held during an fsync
	cond       sync.Cond  // signals the end of a sync
	buf, cells []byte     // buffers for the record being written

	active     int          // index of the active file
	unsure     bool         // the active file is from an earlier process, and may not be durable
	harmed     bool         // the active file is from an earlier process, and the files are damaged
	files      [2]disk.File // nil: not open, or abandoned after an error
	sizes      [2]int64     // bytes
	blank      [2]bool      // the file has no snapshot known to be durable
	used       int64        // bytes of the active file
	durable    int64        // durable bytes of the active file
	generation uint64       // of the active file
	tried      uint64       // the greatest generation that was tried

	sequence uint64 // of the last record written
	wanted   uint64 // of the last record written that a sync must make durable
	synced   uint64 // of the last durable record
	unsynced []credit
	compact  bool // no records may be appended before the next snapshot
	single   bool // a target has records only in the active file, where a damaged page could lose them
	due      bool // the next round writes a snapshot
	changed  bool // Write or Flush was called since the store was opened
	closed   bool

	crowded chan struct{} // has a value when a snapshot is urgent

	// A round makes all changes durable that were made before it began. Rounds are numbered and run one at a time.
	began, ended uint64    // the last round that began or ended
	well         uint64    // the last round without an error
	err          error     // of the last round with an error
	since        time.Time // of the first failed round in a row; zero if the last round succeeded
	settling     int       // callers in settledLocked, which keep the next round from beginning

	log    LogRecord
	logOld bool // log has changes that must be durable within a second
	grown  bool // log.Durable is ahead of the last written record; that need not be durable, because it only has to survive a kill
}

// credit is what target t may rely on once its record is durable.
type credit struct {
	t     Target
	acked segment.Mark
}

// Read reads the files in dir. Missing files and damage are not errors; another format is a *FormatError.
func Read[T any](dir Directory, logger *slog.Logger, decode Decode[T]) (Saved[T], error) {
	files, _, err := readFiles(dir, logger)
	if err != nil {
		return Saved[T]{}, err
	}
	return merge(files, decode), nil
}

// Open reads the files like Read, and returns a store that continues them. The first Sync changes the files, not Open. all
// yields the current targets, ordered by name, and must not wait for the disk.
func Open[T any](dir Directory, logger *slog.Logger, all iter.Seq[Target], decode Decode[T]) (*Store, Saved[T], error) {
	files, sizes, err := readFiles(dir, logger)
	if err != nil {
		return nil, Saved[T]{}, err
	}
	saved := merge(files, decode)
	s := &Store{
		dir: dir, logger: logger, all: all, active: saved.Base, sizes: sizes, blank: [2]bool{true, true}, unsure: saved.Generation > 0,
		harmed: saved.Damaged > 0, generation: saved.Generation, tried: saved.Generation, sequence: saved.sequence, compact: true,
		log: saved.Log, crowded: make(chan struct{}, 1),
	}
	s.cond.L = &s.mu
	return s, saved, nil
}

// Fresh reports whether the files had no records, and none has become durable since.
func (s *Store) Fresh() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.generation == 0
}

// Crowded has a value when a snapshot is urgent: the receiver must call Flush.
func (s *Store) Crowded() <-chan struct{} { return s.crowded }

// Write writes the record of a changed target. The caller passes the ticket to Sync, which returns any error. After an
// error the record is written again as part of the next snapshot.
func (s *Store) Write(t Target) (ticket uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = true
	s.putLocked(t)
	return s.ticketLocked()
}

// Put writes the record of a changed target, which then survives a kill. It waits for the disk only if the active file takes no
// records at present, because of an error or because it is full: then it makes all changes durable in the other file.
func (s *Store) Put(t Target) error {
	s.mu.Lock()
	s.changed = true
	s.putLocked(t)
	if s.closed || !s.compact {
		defer s.mu.Unlock()
		if s.closed {
			return ErrClosed
		}
		return nil
	}
	ticket := s.began + 1
	s.mu.Unlock()
	return s.Sync(ticket)
}

// ticketLocked returns the round that makes all changes so far durable; 0 if all are that must be.
func (s *Store) ticketLocked() uint64 {
	if !s.compact && !s.due && !s.closed && s.synced >= s.wanted {
		return 0
	}
	return s.began + 1
}

// putLocked implements Write.
func (s *Store) putLocked(t Target) {
	if s.compact || s.closed {
		return
	}
	payload, c, ok := t.Encode(appendText(s.buf[:0], t.Name()), false)
	s.buf = payload
	if !ok {
		return
	}
	if !s.appendLocked(kindTarget, payload) {
		t.Unwritten()
		return
	}
	s.wanted = s.sequence
	s.unsynced = append(s.unsynced, credit{t, c.Acked})
	s.single = s.single || c.First
}

// appendLocked appends a record to the active file. If it cannot append it, all records wait for the next snapshot.
func (s *Store) appendLocked(kind recordKind, payload []byte) bool {
	s.sequence++
	id := identity{kind: kind, generation: s.generation, sequence: s.sequence}
	s.cells = appendRecord(s.cells[:0], id, int(s.durable/cellSize), payload)
	if s.used+int64(len(s.cells)) > s.sizes[s.active] {
		s.compact = true
		return false
	}
	if _, err := s.files[s.active].WriteAt(s.cells, s.used); err != nil {
		s.distrustLocked(fmt.Errorf("write: %w", err))
		return false
	}
	was := compactionUrgent(s.used, s.sizes[s.active])
	s.used += int64(len(s.cells))
	if !was && compactionUrgent(s.used, s.sizes[s.active]) {
		select {
		case s.crowded <- struct{}{}:
		default: // crowded already has a value
		}
	}
	return true
}

// distrustLocked abandons the active file after an error; the next round writes a snapshot.
func (s *Store) distrustLocked(err error) {
	s.logger.Warn("A savepoint file had an error; going on in the other one", "file", names[s.active], "err", err)
	s.compact = true
}

// End durably ends the queue of a target. If to is not nil, the queue becomes that of to. change makes the same change in
// memory; no snapshot is being written while it runs. After an error the caller must undo the change: the next snapshot
// names the targets in memory.
func (s *Store) End(name string, to Target, change func()) error {
	s.mu.Lock()
	s.settledLocked()
	change()
	if s.compact || s.closed {
		// The next snapshot records the change.
	} else if payload := appendText(nil, name); to == nil {
		s.appendLocked(kindDrop, payload)
	} else {
		payload, c, _ := to.Encode(appendText(payload, to.Name()), true)
		if s.appendLocked(kindRename, payload) {
			s.unsynced = append(s.unsynced, credit{to, c.Acked})
		} else {
			to.Unwritten()
		}
	}
	ticket := s.began + 1
	s.mu.Unlock()
	return s.Sync(ticket)
}

// settledLocked waits until no round runs. None can begin before the caller releases mu. The next round waits for the callers of
// settledLocked, so that continuous changes cannot starve them.
func (s *Store) settledLocked() {
	s.settling++
	for s.began > s.ended {
		s.cond.Wait()
	}
	s.settling--
	s.cond.Broadcast()
}

// Renew makes the next round write a snapshot, because the files may name a target that does not exist.
func (s *Store) Renew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settledLocked()
	s.due = true
}

// Learn records the last durable commit of the log.
func (s *Store) Learn(durable segment.Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was := s.log.Durable; durable.Log != (segment.ID{}) && (durable.Log != was.Log || durable.Commit > was.Commit) {
		s.log.Durable, s.grown = durable, true
	}
}

// Durable returns the last durable commit from Learn, or from an earlier process.
func (s *Store) Durable() segment.Mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Durable
}

// IsLost reports whether a target without a record may have had one that is unreadable now.
func (s *Store) IsLost() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Lost
}

// SetLost sets what IsLost reports.
func (s *Store) SetLost(lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.log.Lost != lost {
		s.log.Lost, s.logOld = lost, true
	}
}

// Flush writes all changes and makes them durable. If patient is true, a mere change of the log's durable end is written, and
// becomes durable with the next other record.
func (s *Store) Flush(patient bool) error {
	s.mu.Lock()
	s.changed = true
	s.putAllLocked(patient)
	s.due = s.due || s.single || compactionDue(s.used, s.sizes[s.active])
	ticket := s.ticketLocked()
	s.mu.Unlock()
	return s.Sync(ticket)
}

// putAllLocked writes the records of all changed targets, and that of the log; patient is as for Flush.
func (s *Store) putAllLocked(patient bool) {
	for t := range s.all {
		s.putLocked(t)
	}
	must := s.logOld || !patient
	if (s.logOld || s.grown) && !s.compact && !s.closed && s.appendLocked(kindLog, appendLog(nil, s.log)) {
		s.logOld, s.grown = false, false
	}
	if must {
		s.wanted = s.sequence
	}
}

// Sync returns when the round of that number has ended. A caller that finds no round running runs one; others wait for it.
func (s *Store) Sync(ticket uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.ended < ticket {
		switch {
		case s.closed:
			return ErrClosed
		case s.began > s.ended, s.settling > 0:
			s.cond.Wait()
		default:
			s.roundLocked()
		}
	}
	if s.well < ticket {
		return s.err
	}
	return nil
}

// roundLocked runs one round. It releases mu while it waits for the disk.
func (s *Store) roundLocked() {
	s.began++
	rewrite := s.compact || s.due || compactionDue(s.used, s.sizes[s.active])
	s.due = false
	if !rewrite {
		s.syncActiveLocked()
		rewrite = s.compact // set after an error
	}
	var err error
	for range 2 { // again if the other file has no durable snapshot, or less room
		if err == nil && (rewrite || s.blank[1-s.active]) {
			rewrite, err = s.rewriteLocked()
		}
	}
	s.ended++
	if err == nil {
		s.well, s.since = s.ended, time.Time{}
	} else if s.err = err; s.since.IsZero() {
		s.since = time.Now()
	}
	s.cond.Broadcast()
}

// syncActiveLocked makes the appended records durable. It releases mu during the fsync.
func (s *Store) syncActiveLocked() {
	f, through, used, credits := s.files[s.active], s.sequence, s.used, s.unsynced
	s.unsynced = nil
	s.mu.Unlock()
	err := f.Sync()
	s.mu.Lock()
	if err != nil {
		s.distrustLocked(fmt.Errorf("sync: %w", err))
		return
	}
	s.synced, s.durable = through, used
	for _, c := range credits {
		c.t.RelyOn(c.acked)
	}
}

// RefusedFor is how long syncs have failed; 0 if the last one succeeded.
func (s *Store) RefusedFor() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		return 0
	}
	return time.Since(s.since)
}

// Close makes all records durable and closes the files.
func (s *Store) Close() (err error) {
	s.mu.Lock()
	changed := s.changed && !s.closed // otherwise Open of the log may have failed: do not change its files
	s.mu.Unlock()
	if changed {
		err = s.Flush(false)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settledLocked()
	s.closed = true
	for i, f := range s.files {
		if f != nil {
			err = errors.Join(err, f.Close())
			s.files[i] = nil
		}
	}
	return err
}
