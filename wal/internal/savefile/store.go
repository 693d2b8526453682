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

// ErrClosed is the error of what a closed store is asked to make durable.
var ErrClosed = errors.New("log is closed")

// names are the two files. No savepoint file of an earlier format has such a name.
var names = [2]string{"records.0", "records.1"}

// Store keeps the newest record of each target in two files. One of them is active: it begins with a snapshot,
// and records are appended to it. When three eighths of it are used, or it has had an error, a new snapshot is written
// to the other one, which is active from then on. So there is always a file that was durable as a whole and that no write
// touches but behind what is durable.
//
// What is written counts after a kill; it is durable when Sync returns. All methods are safe for concurrent use.
//
// Invariant: nothing is appended to a file before its snapshot is durable.
// Invariant: a file that had an error is not appended to, and not synced, until a new snapshot is in it.
type Store struct {
	dir    Directory
	logger *slog.Logger
	all    iter.Seq[Target] // in the order of names; called with mu held

	mu         sync.Mutex // guards what follows; taken before a target's; never held during an fsync
	cond       sync.Cond  // a sync has ended
	buf, cells []byte     // of the record that is being written

	active     int          // index of the file that is appended to
	unsure     bool         // the active file is an earlier process', and may not be durable
	harmed     bool         // and has damage
	files      [2]disk.File // nil: not open, or not to be trusted
	sizes      [2]int64     // bytes
	blank      [2]bool      // has no snapshot that is durable, as far as this process knows
	traces     [2]trace
	used       int64  // bytes of the active file
	durable    int64  // of these
	generation uint64 // of the active file
	tried      uint64 // the greatest generation that was tried

	sequence uint64 // of the record written last
	synced   uint64 // of the last one that is durable
	unsynced []credit
	compact  bool // nothing may be appended before the next snapshot
	single   bool // a target has records in the active file only: any page of that may be damaged
	due      bool // the next round writes a snapshot because of that
	changed  bool // something was to be written since it was opened
	closed   bool

	crowded chan struct{} // has one when a snapshot is urgent

	// A round makes durable whatever has changed before it began. Rounds are numbered, and run one after the other.
	began, ended uint64    // the last one that has
	well         uint64    // the last one without an error
	err          error     // of the last one that had one
	since        time.Time // when rounds began to fail; zero if the last one was well
	settling     int       // how many wait for the present round, and that no other one begins

	log    LogRecord
	logOld bool      // log has changed since it was written, in what is to be durable within a second
	grewAt time.Time // since when log.Durable is further than what was written; zero: it is not
}

// durableLag is for how long the record of how much of the log is durable may wait for another one that is to be
// written. Alone it costs a page of the disk. With the second between two rounds it bounds the end of the log that is missing
// without being counted, if it is destroyed together with a kill, to two seconds.
const durableLag = time.Second

// credit is what the target t may rely on once a record of it is durable.
type credit struct {
	t Target
	Credit
}

// Read reads the files in dir. A file that is not there and damage are no errors, a *FormatError is one.
func Read[T any](dir Directory, logger *slog.Logger, decode Decode[T]) (Saved[T], error) {
	files, _, err := readFiles(dir, logger)
	if err != nil {
		return Saved[T]{}, err
	}
	return merge(files, decode), nil
}

// Open is Read, and returns a store that goes on with the files. It changes nothing: the first Sync does. all are the targets
// that there are whenever it is called, in the order of names; it waits for no disk.
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

// Fresh reports whether the files had no record, and none has been made durable since.
func (s *Store) Fresh() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.generation == 0
}

// Crowded has a value when a snapshot is due before the next second: Flush then.
func (s *Store) Crowded() <-chan struct{} { return s.crowded }

// Write writes the record of a target that has changed. What it returns is to be given to Sync. An error shows there,
// and nowhere else: the record is written again as part of the next snapshot.
func (s *Store) Write(t Target) (ticket uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = true
	s.putLocked(t)
	return s.ticketLocked()
}

// ticketLocked is the round that makes durable what has changed by now; 0 if everything is.
func (s *Store) ticketLocked() uint64 {
	if !s.compact && !s.due && !s.closed && s.synced == s.sequence {
		return 0
	}
	return s.began + 1
}

// putLocked is Write.
func (s *Store) putLocked(t Target) {
	if s.compact || s.closed {
		return
	}
	payload, c, ok := t.Encode(appendText(s.buf[:0], t.Name()), false)
	s.buf = payload
	if !ok {
		return
	}
	if !s.appendLocked(kindTarget, t.Name(), payload) {
		t.Unwritten()
		return
	}
	s.unsynced = append(s.unsynced, credit{t, c})
	s.single = s.single || c.First
}

// appendLocked appends a record to the active file. If that cannot be, everything waits for the next snapshot.
func (s *Store) appendLocked(kind recordKind, name string, payload []byte) bool {
	s.sequence++
	id := identity{kind: kind, generation: s.generation, sequence: s.sequence}
	if kind != kindLog {
		id.owner = ownerOf(name)
	}
	s.cells = appendRecord(s.cells[:0], id, int(s.durable/cellSize), payload)
	if s.used+int64(len(s.cells)) > s.sizes[s.active] {
		s.compact = true
		return false
	}
	if _, err := s.files[s.active].WriteAt(s.cells, s.used); err != nil {
		s.distrustLocked(fmt.Errorf("write: %w", err))
		return false
	}
	s.traces[s.active].last, s.traces[s.active].at = id, s.used
	was := compactionUrgent(s.used, s.sizes[s.active])
	s.used += int64(len(s.cells))
	if !was && compactionUrgent(s.used, s.sizes[s.active]) {
		select {
		case s.crowded <- struct{}{}:
		default: // the housekeeping will see the one that is there
		}
	}
	return true
}

// distrustLocked leaves the active file as it is.
func (s *Store) distrustLocked(err error) {
	s.logger.Warn("A savepoint file had an error; going on in the other one", "file", names[s.active], "err", err)
	s.compact = true
}

// End makes durable that a target has no queue any more. If to is not nil, it has the queue from now on. change does the
// same in memory; no snapshot is being written while it runs. After an error the caller takes back what change did: the next
// snapshot names those targets that there are.
func (s *Store) End(name string, to Target, change func()) error {
	s.mu.Lock()
	s.settledLocked()
	change()
	if s.compact || s.closed {
		// The next snapshot tells.
	} else if payload := appendText(nil, name); to == nil {
		s.appendLocked(kindDrop, name, payload)
	} else {
		payload, c, _ := to.Encode(appendText(payload, to.Name()), true)
		if s.appendLocked(kindRename, to.Name(), payload) {
			s.unsynced = append(s.unsynced, credit{to, c})
		} else {
			to.Unwritten()
		}
	}
	ticket := s.began + 1
	s.mu.Unlock()
	return s.Sync(ticket)
}

// settledLocked waits until no round runs, and none begins before the caller releases mu. The next one waits for it, so
// that there is an end to this also while reservations are made without a pause.
func (s *Store) settledLocked() {
	s.settling++
	for s.began > s.ended {
		s.cond.Wait()
	}
	s.settling--
	s.cond.Broadcast()
}

// Renew has the next round write a snapshot, because the files may have a target that is none.
func (s *Store) Renew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settledLocked()
	s.due = true
}

// Learn notes how much of the log is durable.
func (s *Store) Learn(durable segment.Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was := s.log.Durable; durable.Log != (segment.ID{}) && (durable.Log != was.Log || durable.Commit > was.Commit) {
		s.log.Durable = durable
		if s.grewAt.IsZero() {
			s.grewAt = time.Now()
		}
	}
}

// Durable is what Learn was told last, or an earlier process.
func (s *Store) Durable() segment.Mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Durable
}

// IsLost reports whether a target without a record may have had one that is unreadable now.
func (s *Store) IsLost(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Lost.Has(name)
}

// MissAll says that any target may have had a record.
func (s *Store) MissAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.Lost.All, s.logOld = true, true
}

// Found says that a target has a record again.
func (s *Store) Found(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.log.Lost.Any() {
		s.logOld = true
		delete(s.log.Lost.Owners, ownerOf(name))
	}
}

// FoundAll says that no target is missed but those that are known by their owner.
func (s *Store) FoundAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.log.Lost.Any() {
		s.logOld = true
		s.log.Lost.All = false
	}
}

// Flush writes whatever has changed, and makes it durable. If patient is set, how much of the log is durable is
// not written for its own sake before durableLag.
func (s *Store) Flush(patient bool) error {
	s.mu.Lock()
	s.changed = true
	s.putAllLocked(patient)
	s.due = s.due || s.single
	ticket := s.ticketLocked()
	s.mu.Unlock()
	return s.Sync(ticket)
}

// putAllLocked writes the records of all targets that have changed, and that of the log; patient is as for Flush.
func (s *Store) putAllLocked(patient bool) {
	for t := range s.all {
		s.putLocked(t)
	}
	if s.logDueLocked(patient) && !s.compact && !s.closed && s.appendLocked(kindLog, "", appendLog(nil, s.log)) {
		s.logOld, s.grewAt = false, time.Time{}
	}
}

// logDueLocked reports whether the record of the log is to be written now.
func (s *Store) logDueLocked(patient bool) bool {
	if s.logOld || s.grewAt.IsZero() {
		return s.logOld
	}
	return !patient || s.synced != s.sequence || time.Since(s.grewAt) >= durableLag
}

// Sync returns when the round with that number has ended. Whoever finds none running runs one; the others wait for it.
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

// roundLocked is one round. It lets mu go while it waits for the disk.
func (s *Store) roundLocked() {
	s.began++
	rewrite := s.compact || s.due || compactionDue(s.used, s.sizes[s.active])
	s.due = false
	if !rewrite {
		s.syncActiveLocked()
		rewrite = s.compact // there was an error
	}
	var err error
	for range 2 { // once more if the other file has no durable snapshot, or less room
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

// syncActiveLocked makes durable what was appended. It lets mu go during the fsync.
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
		c.t.RelyOn(c.Credit)
	}
}

// RefusedFor is for how long syncs have failed; 0 if the last one was well.
func (s *Store) RefusedFor() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		return 0
	}
	return time.Since(s.since)
}

// Close makes everything durable and closes the files.
func (s *Store) Close() (err error) {
	s.mu.Lock()
	changed := s.changed && !s.closed // else the log may have been refused, and stays as it is
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
