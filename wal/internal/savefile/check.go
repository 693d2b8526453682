package savefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// trace identifies the file that this process writes by its records; the zero value matches any file.
type trace struct {
	first, last identity // of its records
	at          int64    // offset of the last record, bytes
}

// Check checks that the files still exist and are the same. The next sync rewrites a file that is not.
func (s *Store) Check() error {
	for i := range names {
		s.mu.Lock()
		wants, size := s.traces[i], s.sizes[i]
		s.mu.Unlock()
		if what, err := s.gone(i, wants, size); err != nil {
			return fmt.Errorf("check savepoints: %w", err)
		} else if what != "" {
			s.vanished(i)
		}
	}
	return nil
}

// gone describes what happened to the i-th file if a process started now would not find the records of this process in it;
// "" if it would, or if that is unknown.
func (s *Store) gone(i int, wants trace, size int64) (what string, err error) {
	f, err := s.dir.Open(names[i], os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		return "removed", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	if wants == (trace{}) {
		return "", nil
	}
	differs := func(at int64, n int, same func(b []byte) bool) bool {
		b := make([]byte, n)
		if _, err := f.ReadAt(b, at); err != nil {
			return errors.Is(err, io.EOF) // other errors are damage, which a start detects
		}
		return !same(b)
	}
	is := func(want identity) func(b []byte) bool {
		return func(b []byte) bool {
			id, ok, err := decodeIdentity(b)
			return err == nil && ok && id == want
		}
	}
	switch {
	case differs(size-1, 1, func([]byte) bool { return true }):
		return "cut short", nil
	case differs(0, identitySize, is(wants.first)), differs(wants.at, identitySize, is(wants.last)):
		return "replaced", nil
	}
	return "", nil
}

// vanished makes the next sync rewrite the i-th file, unless that is already due.
func (s *Store) vanished(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settledLocked()
	if s.blank[i] {
		return
	}
	what, err := s.gone(i, s.traces[i], s.sizes[i]) // check again: a snapshot may have been written meanwhile
	if err != nil || what == "" {
		return
	}
	s.logger.Error("A savepoint file was changed under the running agent; writing it anew", "file", names[i], "change", what)
	if s.files[i] != nil {
		_ = s.files[i].Close() // the open file no longer has this name
	}
	s.files[i], s.sizes[i], s.blank[i], s.traces[i] = nil, 0, true, trace{}
	s.active, s.compact = 1-i, true
}
