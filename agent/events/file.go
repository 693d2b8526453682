package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// FileName is the journal's file in the storage directory.
const FileName = "events.json"

// maxFile bounds the bytes read of the file: maxEvents and maxLosses with the accounts of a thousand targets take a
// fraction of that.
const maxFile = 8 << 20

// growEvery is how often the file is written while losses grow but nothing else happens. The ledgers have the losses
// that are not in the file yet.
const growEvery = time.Minute

// Open reads the journal in the storage directory; without a file it is empty. If the file cannot be read, it returns
// an error, and a journal that has nothing but the loss of the record.
func Open(storage string) (_ *Journal, err error) {
	j := &Journal{file: filepath.Join(storage, FileName), s: state{Schema: 1}}
	defer func() { j.unread = err != nil }()
	info, err := os.Lstat(j.file)
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	if err == nil && !info.Mode().IsRegular() { // to open a pipe could wait forever
		return j, fmt.Errorf("read events: %s is not a regular file; the next save replaces it", j.file)
	}
	if err != nil {
		return j, fmt.Errorf("read events: %w", err)
	}
	f, err := os.Open(j.file)
	if err != nil {
		return j, fmt.Errorf("read events: %w", err)
	}
	defer func() { _ = f.Close() }() // read-only: nothing to lose
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return j, fmt.Errorf("read events: %w", err)
	}
	var s state
	if err := json.Unmarshal(b, &s); err != nil {
		return j, fmt.Errorf("read events of %s: %w", j.file, err)
	}
	if s.Schema != 1 {
		return j, fmt.Errorf("read events of %s: its schema is %d, not 1", j.file, s.Schema)
	}
	j.s = s
	return j, nil
}

// Save makes the journal durable, if it has changed. An error or a kill leaves the former file.
func (j *Journal) Save(now time.Time) error {
	j.saveMu.Lock()
	defer j.saveMu.Unlock()
	j.mu.Lock()
	changes, growing := j.changes, j.growing
	if changes == j.saved && !(growing && now.Sub(j.at).Abs() >= growEvery) {
		j.mu.Unlock()
		return nil
	}
	j.forget(now)
	b, err := json.Marshal(j.s)
	j.growing = false
	j.mu.Unlock()
	if err == nil {
		err = replace(j.file, b)
	}
	if err != nil {
		j.mu.Lock()
		j.growing = j.growing || growing
		j.mu.Unlock()
		return fmt.Errorf("save events: %w", err)
	}
	j.saved, j.at = changes, now
	return nil
}

// replace replaces a file by one with that content, readable by its owner only. The new content is durable before it
// gets the name, and the name before replace returns.
func replace(name string, content []byte) (err error) {
	f, err := os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(name+".new", name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(name+".new"))
	}
	return syncDir(filepath.Dir(name))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	// fsync(2), EINVAL: the file system cannot sync directories; their names are as durable as possible.
	if runtime.GOOS == "windows" || errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, d.Close())
}
