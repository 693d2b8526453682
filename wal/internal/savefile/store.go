package savefile

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"sync"

	"hwsagent/wal/internal/disk"
	"hwsagent/wal/internal/segment"
)

// ErrClosed is the error of Sync, Flush and End on a closed store.
var ErrClosed = errors.New("log is closed")

// Target is a target whose newest record the store keeps. The store calls its methods with its mutex held: they must not
// wait for the disk or call the store.
type Target interface {
	Name() string // unique among the targets of a store

	// Encode appends the body of a record to b, and marks it as written. Segments before that of acked may be deleted once the record
	// is durable. ok is false, and body is b, if the target is gone, or has not changed and always is false.
	Encode(b []byte, always bool) (body []byte, acked segment.Mark, ok bool)

	// Unwritten means that the last encoded body did not become a record.
	Unwritten()

	// RelyOn means that the record encoded with that acked is durable.
	RelyOn(acked segment.Mark)
}

// Store keeps the newest record of each target in two files, used in turn. The active file begins with the state of all targets, to which
// records are appended. When half of it is used, or after an error, the other file is begun: it gets the state of all targets, an fsync,
// and is then the active one. So there is always one file with a durable state, to which writes only append.
//
// Records survive a kill when Write or Put returns, and a power cut when Sync returns. All methods are safe for concurrent use.
//
// Invariant: records are appended to a file only after its state is durable.
// Invariant: after an error, a file is neither appended to nor synced until it is begun again.
type Store struct {
	dir    Directory
	logger *slog.Logger
	all    iter.Seq[Target] // ordered by name; called with mu held

	// turn holds a value while a round runs, or a target ends: the holder may wait for the disk, and only it changes the files. It is taken
	// before mu. A round makes all changes durable that were made before it began.
	turn chan struct{}

	mu         sync.Mutex // guards the following fields; taken before a target's mutex; never held during an fsync
	buf, slots []byte     // buffers for the record being written

	active int          // index of the active file
	unsure bool         // the active file is from an earlier process, and may not be durable
	begin  bool         // the other file must be begun before a record can be appended
	again  bool         // after that also the active one: it is missing or damaged
	files  [2]disk.File // nil: not open, or abandoned after an error. The holder of turn changes that of the inactive file without mu
	sizes  [2]int64     // bytes; 0: the file must be created
	used   int64        // bytes of the active file
	head   header       // of the records appended to it

	sequence uint64 // of the last record written
	wanted   uint64 // of the last record written that a round must make durable
	durable  uint64 // of the last durable record
	unsynced []credit
	changed  bool // since the store was opened
	closed   bool

	crowded chan struct{} // has a value when the other file must be begun soon

	rounds uint64 // how many have begun
	err    error  // of the last round

	log    LogRecord
	logOld bool // log has changes that must be durable within a second
	grown  bool // log.Durable is ahead of the last written record; that need not be durable, because it only has to survive a kill
}

// credit is what target t may rely on once its record is durable.
type credit struct {
	t     Target
	acked segment.Mark
}

// Open reads the files like Read, and returns a store that continues them. The first round changes the files, not Open. all
// yields the current targets, ordered by name, and must not wait for the disk.
func Open(dir Directory, logger *slog.Logger, all iter.Seq[Target]) (*Store, Saved, error) {
	saved, sizes, err := readFiles(dir, logger)
	if err != nil {
		return nil, Saved{}, err
	}
	return &Store{
		dir: dir, logger: logger, all: all, turn: make(chan struct{}, 1), active: saved.base, sizes: sizes, unsure: true,
		begin: true, again: saved.Fresh() || saved.Bad > 0, sequence: saved.sequence, log: saved.Log, crowded: make(chan struct{}, 1),
	}, saved, nil
}

// Crowded has a value when the other file must be begun before the next second: the receiver must call Flush.
func (s *Store) Crowded() <-chan struct{} { return s.crowded }

// Write writes the record of a changed target. The caller passes the result to Sync, which returns any error. After an
// error the record is written again in the other file.
func (s *Store) Write(t Target) (need uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = true
	s.putLocked(t)
	return s.wanted
}

// Put writes the record of a changed target, which then survives a kill. It waits for the disk only if the active file takes no
// records at present, because of an error or because it is full: then it begins the other one.
func (s *Store) Put(t Target) error {
	s.Write(t)
	s.mu.Lock()
	isRefused := s.begin || s.closed
	s.mu.Unlock()
	if isRefused {
		return s.Sync(0)
	}
	return nil
}

// putLocked writes the record of a target if it has changed.
func (s *Store) putLocked(t Target) {
	if s.begin || s.closed {
		return // the next state has it
	}
	body, acked, ok := t.Encode(appendText(s.buf[:0], t.Name()), false)
	if s.buf = body; !ok {
		return
	}
	if !s.appendLocked(kindTarget, body) {
		t.Unwritten()
		return
	}
	s.wanted = s.sequence
	s.unsynced = append(s.unsynced, credit{t, acked})
}

// appendLocked appends a record to the active file. If that is refused, all records wait until the other file is begun.
func (s *Store) appendLocked(k kind, payload []byte) bool {
	s.sequence++
	s.head.kind, s.head.sequence = k, s.sequence
	s.slots = appendRecord(s.slots[:0], s.head, payload)
	end := s.used + int64(len(s.slots))
	if size := s.sizes[s.active]; end > size/4*3 && s.used <= size/4*3 || end > size {
		select {
		case s.crowded <- struct{}{}:
		default: // crowded already has a value
		}
		s.begin = s.begin || end > size
	}
	if s.begin {
		return false
	}
	if _, err := s.files[s.active].WriteAt(s.slots, s.used); err != nil {
		s.distrustLocked(fmt.Errorf("write: %w", err))
		return false
	}
	s.used = end
	return true
}

// distrustLocked abandons the active file after an error; the next round begins the other one.
func (s *Store) distrustLocked(err error) {
	s.logger.Warn("A savepoint file had an error; going on in the other one", "file", names[s.active], "err", err)
	s.begin = true
}

// End durably ends the queue of a target. If to is not nil, the queue becomes that of to. change makes the same change in
// memory; no round runs meanwhile. After an error the caller must undo the change and call Renew.
func (s *Store) End(name string, to Target, change func()) error {
	s.turn <- struct{}{}
	s.mu.Lock()
	change()
	if s.begin || s.closed {
		// The next state has the change.
	} else if payload := appendText(nil, name); to == nil {
		s.appendLocked(kindDrop, payload)
	} else {
		payload, acked, _ := to.Encode(appendText(payload, to.Name()), true)
		if s.appendLocked(kindRename, payload) {
			s.unsynced = append(s.unsynced, credit{to, acked})
		} else {
			to.Unwritten()
		}
	}
	s.wanted = s.sequence
	need := s.wanted
	s.mu.Unlock()
	<-s.turn
	return s.Sync(need)
}

// Renew makes the next round begin the other file, because the files may name a target that does not exist.
func (s *Store) Renew() {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin = true
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
	need := s.wanted
	s.mu.Unlock()
	return s.Sync(need)
}

// putAllLocked writes the records of all changed targets, and that of the log; patient is as for Flush.
func (s *Store) putAllLocked(patient bool) {
	for t := range s.all {
		s.putLocked(t)
	}
	must := s.logOld || !patient
	if (s.logOld || s.grown) && !s.begin && !s.closed && s.appendLocked(kindLog, appendLog(nil, s.log)) {
		s.logOld, s.grown = false, false
	}
	if must {
		s.wanted = s.sequence
	}
}

// Sync returns when all records up to need are durable, and the active file takes records. Of the callers that wait for one round, the
// first runs it.
func (s *Store) Sync(need uint64) error {
	s.mu.Lock()
	began := s.rounds
	done := !s.begin && !s.again && s.durable >= need && !s.closed
	s.mu.Unlock()
	if done {
		return nil
	}
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return ErrClosed
	case s.rounds > began:
		return s.err // a round that began after the call
	}
	s.rounds++
	s.err = s.roundLocked()
	return s.err
}

// roundLocked makes all changes durable. It releases mu while it waits for the disk.
func (s *Store) roundLocked() (err error) {
	isDue := s.begin || 2*s.used > s.sizes[s.active]
	if !isDue {
		s.syncLocked()
	}
	if isDue || s.begin {
		err = s.beginLocked()
	}
	if err == nil && s.again {
		if err = s.beginLocked(); err == nil {
			s.again = false
		}
	}
	return err
}

// syncLocked makes the appended records durable. It releases mu during the fsync.
func (s *Store) syncLocked() {
	f, through, credits := s.files[s.active], s.sequence, s.unsynced
	s.unsynced = nil
	s.mu.Unlock()
	err := f.Sync()
	s.mu.Lock()
	if err != nil {
		s.distrustLocked(fmt.Errorf("sync: %w", err))
		return
	}
	s.durable = through
	for _, c := range credits {
		c.t.RelyOn(c.acked)
	}
}

// beginLocked begins the other file, which then becomes the active one. It releases mu while it waits for the disk; meanwhile
// records are appended to the active file if that is possible.
func (s *Store) beginLocked() (err error) {
	to := 1 - s.active
	state, head, credits := s.stateLocked()
	through, size := s.sequence, s.sizes[to]
	s.unsynced = nil
	s.mu.Unlock()
	if s.unsure {
		err = restore(s.dir, names[s.active], s.sizes[s.active])
	}
	if err == nil {
		size, err = s.write(to, size, state)
	}
	s.mu.Lock()
	s.sizes[to] = size
	if err != nil {
		s.begin = true // records that were appended before are not durable
		return fmt.Errorf("write savepoints: %w", err)
	}
	s.active, s.used, s.head, s.durable = to, int64(len(state)), head, through
	s.begin, s.unsure = false, false
	for _, c := range credits {
		c.t.RelyOn(c.acked)
	}
	for _, c := range s.unsynced {
		c.t.Unwritten() // its record is only in the other file
	}
	s.unsynced = nil
	s.logOld = true // the record after the state tells a damaged state from one that was not written to its end
	s.putAllLocked(false)
	return nil
}

// stateLocked encodes the records of all targets, and marks them as written. head is for the records appended later.
func (s *Store) stateLocked() (b []byte, head header, credits []credit) {
	type record struct {
		kind    kind
		payload []byte
	}
	head.since = s.sequence + 1
	records := []record{{kindLog, appendLog(nil, s.log)}}
	s.logOld, s.grown = false, false
	for t := range s.all {
		if payload, acked, ok := t.Encode(appendText(nil, t.Name()), true); ok {
			records = append(records, record{kindTarget, payload})
			credits = append(credits, credit{t, acked})
		}
	}
	for _, r := range records {
		head.slots += uint32(slotsFor(len(r.payload)))
	}
	for _, r := range records {
		s.sequence++
		h := head
		h.kind, h.state, h.sequence = r.kind, true, s.sequence
		b = appendRecord(b, h, r.payload)
	}
	return b, head, credits
}

// write durably writes a state to the beginning of a file, which gets zeros for later records first if the disk has room. It returns
// the size of the file.
func (s *Store) write(to int, size int64, state []byte) (int64, error) {
	created := size == 0
	if s.files[to] == nil {
		flag := os.O_RDWR
		if created {
			flag |= os.O_CREATE | os.O_TRUNC
		}
		f, err := s.dir.Open(names[to], flag)
		if err != nil {
			return size, err
		}
		s.files[to] = f
	}
	f := s.files[to]
	size, err := grow(f, size, capacity(int64(len(state))))
	if size >= minFile && size >= int64(len(state)) { // otherwise err has the reason
		if _, err = f.WriteAt(state, 0); err == nil {
			err = f.Sync()
		}
		uncache(f)
	}
	if err == nil && created {
		err = s.dir.Sync()
	}
	if err != nil {
		err = errors.Join(err, f.Close())
		s.files[to] = nil // use a new descriptor next time
		if created {
			size = 0 // the directory may not have it
		}
	}
	return size, err
}

// grow appends zeros to a file, and returns the size that it has then.
func grow(f disk.File, size, want int64) (int64, error) {
	var zeros []byte
	for size < want {
		if zeros == nil {
			zeros = make([]byte, minFile)
		}
		n := minFile - size%minFile
		if _, err := f.WriteAt(zeros[:n], size); err != nil {
			return size, err
		}
		size += n
	}
	return size, nil
}

// restore makes the readable parts of a file durable.
func restore(dir Directory, name string, size int64) (err error) {
	if size == 0 {
		return nil // there is none
	}
	f, err := dir.Open(name, os.O_RDWR)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := ReadLeft(f, 0, size).Restore(f); err != nil {
		return err
	}
	return dir.Sync()
}

// Close makes all records durable and closes the files.
func (s *Store) Close() (err error) {
	s.mu.Lock()
	changed := s.changed && !s.closed // otherwise Open of the log may have failed: do not change its files
	s.mu.Unlock()
	if changed {
		err = s.Flush(false)
	}
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for i, f := range s.files {
		if f != nil {
			err = errors.Join(err, f.Close())
			s.files[i] = nil
		}
	}
	return err
}
