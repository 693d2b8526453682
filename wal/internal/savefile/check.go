package savefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"hwsagent/wal/internal/disk"
)

// trace identifies the file that this process writes, and its records; the zero value matches any file.
type trace struct {
	file        disk.File
	first, last identity // of its records
	at          int64    // offset of the last record, bytes

	// looked is the modification time of the file when both records were last found. Until it changes, both are there.
	looked time.Time
}

// Check checks that the files still exist and are the same. The next sync rewrites a file that is not.
func (s *Store) Check() error {
	for i := range names {
		s.mu.Lock()
		what, err := s.goneLocked(i)
		s.mu.Unlock()
		if err != nil {
			return fmt.Errorf("check savepoints: %w", err)
		}
		if what != "" {
			s.vanished(i)
		}
	}
	return nil
}

// goneLocked describes what happened to the i-th file if a process started now would not find the records of this process in
// it; "" if it would, or if that is unknown.
func (s *Store) goneLocked(i int) (what string, err error) {
	t := &s.traces[i]
	switch info, err := s.dir.Look(names[i], t.file); {
	case errors.Is(err, fs.ErrNotExist):
		return "removed", nil
	case errors.Is(err, disk.ErrReplaced):
		return "replaced", nil
	case err != nil:
		return "", err
	case t.file == nil || info.ModTime.Equal(t.looked):
		return "", nil
	case info.Size < s.sizes[i]:
		return "cut short", nil
	case t.differs(0, t.first), t.differs(t.at, t.last):
		return "overwritten", nil
	default:
		t.looked = info.ModTime
		return "", nil
	}
}

// differs reports whether the record at an offset of the file is another one than that.
func (t *trace) differs(at int64, want identity) bool {
	b := make([]byte, identitySize)
	if _, err := t.file.ReadAt(b, at); err != nil {
		return errors.Is(err, io.EOF) // other errors are damage, which a start detects
	}
	id, ok, err := decodeIdentity(b)
	return err != nil || !ok || id != want
}

// vanished makes the next sync rewrite the i-th file, unless that is already due.
func (s *Store) vanished(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settledLocked()
	if s.blank[i] {
		return
	}
	what, err := s.goneLocked(i) // check again: a snapshot may have been written meanwhile
	if err != nil || what == "" {
		return
	}
	s.logger.Error("Another program changed a savepoint file; replacing it", "file", names[i], "change", what)
	if s.files[i] != nil {
		_ = s.files[i].Close() // the open file no longer has this name
	}
	s.files[i], s.sizes[i], s.blank[i], s.traces[i] = nil, 0, true, trace{}
	s.active, s.compact = 1-i, true
}
