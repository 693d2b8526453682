package disk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// Lock is the right to write in a directory. The operating system takes it back when
// the process ends, however that happens; the file stays.
type Lock struct{ f *os.File }

// How long, and at which pace, a lock is waited for whose process is gone. That has left it to
// a child which it was just starting: a child has all files until it runs its program.
const (
	orphanLimit = 750 * time.Millisecond
	orphanPace  = 10 * time.Millisecond
)

// Lock takes the lock file of that name, and writes into it which process has it.
// It does not wait for a process that lives: the error is ErrLocked and names it.
func (d *Root) Lock(name string) (*Lock, error) {
	f, err := d.root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file in %s: %w", d.path, err)
	}
	ok, err := tryLock(f)
	for end := time.Now().Add(orphanLimit); err == nil && !ok && orphaned(holder(f)) && time.Now().Before(end); {
		time.Sleep(orphanPace)
		ok, err = tryLock(f)
	}
	if err == nil && !ok {
		who := "another process" // which has not written yet which one it is
		if pid := holder(f); pid > 0 {
			who = fmt.Sprintf("process %d", pid)
		}
		err = fmt.Errorf("%w: %s is held by %s; one agent has one directory", ErrLocked, d.path, who)
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
	return &Lock{f}, nil
}

// holder is the process that has written its number, 0 if none has.
func holder(f *os.File) int {
	text, _ := io.ReadAll(io.NewSectionReader(f, 0, 64)) // what cannot be read tells nothing
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid < 1 {
		return 0
	}
	return pid
}

// Release gives the lock up.
func (l *Lock) Release() error { return l.f.Close() }
