package savefile

import (
	"errors"
	"fmt"
	"io/fs"

	"hwsagent/wal/internal/disk"
)

// Check checks that the files still exist and are the same. The next round begins a file anew that is not.
func (s *Store) Check() error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	for i := range names {
		change, err := s.lookAt(i)
		if err != nil {
			return fmt.Errorf("check savepoints: %w", err)
		}
		if change != "" && s.sizes[i] > 0 {
			s.logger.Error("Another program changed a savepoint file; replacing it", "file", names[i], "change", change)
			s.vanished(i)
		}
	}
	return nil
}

// lookAt describes what happened to the i-th file if a process started now would not find it; "" if it would.
func (s *Store) lookAt(i int) (change string, err error) {
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

// vanished makes the next round begin the i-th file.
func (s *Store) vanished(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files[i] != nil {
		_ = s.files[i].Close() // the open file no longer has this name
	}
	s.files[i], s.sizes[i], s.begin = nil, 0, true
	if s.unsure = s.unsure && i != s.active; s.sizes[1-i] == 0 {
		s.again = true
	} else {
		s.active = 1 - i
	}
}
