package savefile

import (
	"errors"
	"fmt"
	"io/fs"

	"hwsagent/wal/internal/disk"
)

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

// goneLocked describes what happened to the i-th file if a process started now would not find it; "" if it would, or if that is
// unknown.
func (s *Store) goneLocked(i int) (what string, err error) {
	switch info, err := s.dir.Look(names[i], s.files[i]); {
	case errors.Is(err, fs.ErrNotExist):
		return "removed", nil
	case errors.Is(err, disk.ErrReplaced):
		return "replaced", nil
	case err != nil:
		return "", err
	case s.files[i] != nil && info.Size < s.sizes[i]:
		return "cut short", nil
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
	what, err := s.goneLocked(i) // check again: a snapshot may have been written meanwhile
	if err != nil || what == "" {
		return
	}
	s.logger.Error("Another program changed a savepoint file; replacing it", "file", names[i], "change", what)
	if s.files[i] != nil {
		_ = s.files[i].Close() // the open file no longer has this name
	}
	s.files[i], s.sizes[i], s.blank[i] = nil, 0, true
	s.active, s.compact = 1-i, true
}
