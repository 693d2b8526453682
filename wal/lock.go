package wal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// lock is the right to write in a directory. The operating system takes it back when
// the process ends, however that happens; the file stays.
type lock struct{ f *os.File }

// takeLock takes the lock file name in dir, and writes into it which process has it.
// It does not wait: the error is ErrLocked and names the other process.
func takeLock(dir *osDirectory, name string) (*lock, error) {
	f, err := dir.root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file in %s: %w", dir.path, err)
	}
	ok, err := tryLock(f)
	if err == nil && !ok {
		holder := "another process" // which has not written yet which one it is
		if pid, _ := io.ReadAll(io.LimitReader(f, 64)); len(pid) > 1 {
			holder = "process " + strings.TrimSpace(string(pid))
		}
		err = fmt.Errorf("%w: %s is held by %s; one agent has one directory", ErrLocked, dir.path, holder)
		return nil, errors.Join(err, f.Close())
	}
	if err == nil {
		// In place: on a full disk, somebody else would get what truncating gives back.
		pid := fmt.Sprintf("%d\n", os.Getpid())
		if _, err = f.WriteAt([]byte(pid), 0); err == nil {
			err = f.Truncate(int64(len(pid)))
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("take lock: %w", err), f.Close())
	}
	return &lock{f}, nil
}

// release gives the lock up.
func (l *lock) release() error { return l.f.Close() }
