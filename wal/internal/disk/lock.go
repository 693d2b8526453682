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

// Lock is the exclusive right to write in a directory. The operating system releases it
// when the process ends, for any reason; the file stays.
type Lock struct {
	f *os.File
	// Unnamed says why the file does not name this process, as on a full disk; nil if it does. The lock holds anyway:
	// the name only helps whoever looks for its holder.
	Unnamed error
}

// Time limit and retry interval for a lock whose process is gone. A child that the process was
// starting still holds it, because a child has all open files until it executes its program.
const (
	orphanLimit = 750 * time.Millisecond
	orphanPace  = 10 * time.Millisecond
)

// Lock takes the lock file of that name and writes the process ID into it, if it can. It does not
// wait for a living process: the error then wraps ErrLocked and names the process.
func (d *Root) Lock(name string) (*Lock, error) {
	f, err := d.root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file in %s: %w", d.path, err)
	}
	if info, err := f.Stat(); err == nil && !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("take lock: %s in %s is not a regular file: remove it", name, d.path), f.Close())
	}
	ok, err := tryLock(f)
	for end := time.Now().Add(orphanLimit); err == nil && !ok && orphaned(holder(f)) && time.Now().Before(end); {
		time.Sleep(orphanPace)
		ok, err = tryLock(f)
	}
	if err == nil && !ok {
		who := "another process" // it has not written its process ID yet
		if pid := holder(f); pid > 0 {
			who = fmt.Sprintf("process %d", pid)
		}
		err = fmt.Errorf("%w: %s is held by %s; one agent has one directory", ErrLocked, d.path, who)
		return nil, errors.Join(err, f.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("take lock: %w", err), f.Close())
	}
	return &Lock{f: f, Unnamed: nameHolder(f)}, nil
}

// nameHolder writes the process ID into the lock file. It overwrites in place: on a full disk, another process could take the
// space that truncating first would free. File systems that copy on write need space even so.
func nameHolder(f *os.File) error {
	pid := fmt.Sprintf("%d\n", os.Getpid())
	if _, err := f.WriteAt([]byte(pid), 0); err != nil {
		return fmt.Errorf("write the process ID into the lock file: %w", err)
	}
	return f.Truncate(int64(len(pid)))
}

// holder returns the process ID in the lock file, 0 if there is none.
func holder(f *os.File) int {
	text, _ := io.ReadAll(io.NewSectionReader(f, 0, 64)) // an unreadable file names no process
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid < 1 {
		return 0
	}
	return pid
}

// Release releases the lock.
func (l *Lock) Release() error { return l.f.Close() }
