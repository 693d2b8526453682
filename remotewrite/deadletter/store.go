// Package deadletter keeps the samples that a remote-write receiver refused, with its
// answer, in a bounded store of JSON lines: one directory for each target.
//
// There are two files. Letters are appended to letters.jsonl; when it reaches half
// of the bounds, it replaces letters.old.jsonl. So
// the newest letters are kept, at least half of the bounds' worth, and people can read
// them with any tool.
package deadletter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"

	"hwsagent/remotewrite"
)

const (
	current  = "letters.jsonl"
	previous = "letters.old.jsonl"
	memory   = "late.json" // see Remember

	// maxLine bounds a letter on disk, in bytes. Longer ones are shortened: series, value and text.
	maxLine = 16 << 10
)

// Options bound a store; zero values mean the defaults.
type Options struct {
	MaxBytes   int64 // of both files; default 16 MiB
	MaxLetters int   // in both files; default 10,000
}

// Store is the dead-letter store of one target. It implements
// [remotewrite.DeadLetters]. Safe for concurrent use.
type Store struct {
	dir  string
	o    Options
	sync func(*os.File) error // makes a file durable; replaced in tests

	mu     sync.Mutex
	file   *os.File // nil after Close
	size   int64    // of the current file; holds whole lines only
	counts [2]int   // letters in the current and the previous file
}

// Open opens the store in dir, and creates the directory if needed. It cuts off an
// unfinished line that a crash left.
func Open(dir string, o Options) (*Store, error) {
	if o.MaxBytes <= 0 {
		o.MaxBytes = 16 << 20
	}
	if o.MaxLetters <= 0 {
		o.MaxLetters = 10_000
	}
	s := &Store{dir: dir, o: o, sync: (*os.File).Sync}
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("open dead letters: %w", err)
	}
	return s, nil
}

func (s *Store) open() error {
	if err := noLink(s.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	for i, name := range [2]string{current, previous} {
		path := filepath.Join(s.dir, name)
		if err := noLink(path); err != nil {
			return err
		}
		f, err := openIfThere(path)
		if err != nil {
			return err
		}
		letters, err := readFrom(f, nil)
		if err = errors.Join(err, shut(f)); err != nil {
			return err
		}
		s.counts[i] = len(letters)
	}
	f, err := os.OpenFile(filepath.Join(s.dir, current), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if s.size, err = wholeLines(f); err == nil {
		err = f.Truncate(s.size)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	s.file = f
	return syncDir(s.dir)
}

// noLink refuses a path that is a symbolic link, which would lead out of the storage directory. Only the agent's user
// may write there, so checking once is enough.
func noLink(path string) error {
	info, err := os.Lstat(path)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("%s is a symbolic link: remove it, and the agent creates the directory", path)
	}
	return ifThere(err)
}

// wholeLines returns the offset after the last newline.
func wholeLines(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	end := info.Size()
	for buf := make([]byte, 4096); end > 0; {
		from := max(end-int64(len(buf)), 0)
		b := buf[:end-from]
		if _, err := f.ReadAt(b, from); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
			return from + int64(i) + 1, nil
		}
		end = from
	}
	return 0, nil
}

// Put appends letters and returns when they are durable. After an error the store contains
// none of them.
func (s *Store) Put(letters []remotewrite.Letter) error {
	var lines []byte
	for _, l := range letters {
		line, err := encode(l)
		if err != nil {
			return fmt.Errorf("put dead letters: %w", err)
		}
		lines = append(append(lines, line...), '\n')
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.put(lines, len(letters)); err != nil {
		return fmt.Errorf("put dead letters: %w", err)
	}
	return nil
}

func encode(l remotewrite.Letter) ([]byte, error) {
	line, err := json.Marshal(l)
	if err != nil || len(line) <= maxLine {
		return line, err
	}
	const keep = 1 << 10
	l.Series, l.Value, l.Text = shorten(l.Series, keep), shorten(l.Value, keep), shorten(l.Text, keep)
	return json.Marshal(l)
}

func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "…"
}

func (s *Store) put(lines []byte, n int) error {
	if s.file == nil {
		return fs.ErrClosed
	}
	if err := s.reopen(); err != nil {
		return err
	}
	if s.size > 0 && (s.size+int64(len(lines)) > s.o.MaxBytes/2 || s.counts[0]+n > s.o.MaxLetters/2) {
		if err := s.rotate(); err != nil {
			return err
		}
	}
	_, err := s.file.WriteAt(lines, s.size)
	if err == nil {
		err = s.sync(s.file)
	}
	if err != nil {
		return errors.Join(err, s.file.Truncate(s.size))
	}
	s.size += int64(len(lines))
	s.counts[0] += n
	return nil
}

// reopen opens the current file again if it was replaced or removed: a person has read the
// letters and removed the file, or rotate failed half-way.
func (s *Store) reopen() error {
	mine, err := s.file.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(filepath.Join(s.dir, current))
	if err == nil && os.SameFile(mine, there) && there.Size() >= s.size { // else it was emptied
		return nil
	}
	old := s.file
	if err := s.open(); err != nil {
		return err
	}
	return old.Close()
}

// rotate makes the current file the previous one.
func (s *Store) rotate() error {
	at := filepath.Join(s.dir, current)
	if err := os.Rename(at, filepath.Join(s.dir, previous)); err != nil {
		return err
	}
	f, err := os.OpenFile(at, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	old := s.file
	s.file, s.size, s.counts = f, 0, [2]int{0, s.counts[0]}
	return errors.Join(old.Close(), syncDir(s.dir))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if runtime.GOOS == "windows" || unsyncable(err) {
		err = nil // file names cannot be made more durable there
	}
	return errors.Join(err, d.Close())
}

// unsyncable reports whether an fsync error means that the file system cannot sync
// directories at all (fsync(2): EINVAL), rather than that this sync failed.
func unsyncable(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported)
}

// Count returns the number of letters in the store.
func (s *Store) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[0] + s.counts[1]
}

// List returns the letters, oldest first. It skips lines that cannot be parsed.
func (s *Store) List() ([]remotewrite.Letter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return List(s.dir)
}

// Clear removes all letters and returns how many there were.
func (s *Store) Clear() (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return 0, fmt.Errorf("clear dead letters: %w", fs.ErrClosed)
	}
	n = s.counts[0] + s.counts[1]
	old := s.file
	if err = removeFiles(s.dir); err == nil {
		err = s.open()
	}
	if err != nil {
		return 0, fmt.Errorf("clear dead letters: %w", err)
	}
	return n, old.Close()
}

// Remove removes a store that is not open, with its directory.
func Remove(dir string) error {
	err := removeFiles(dir)
	for _, name := range []string{memory, memory + ".new"} {
		if err == nil {
			err = ifThere(os.Remove(filepath.Join(dir, name)))
		}
	}
	if err == nil {
		err = ifThere(os.Remove(dir))
	}
	if err != nil {
		return fmt.Errorf("remove dead letters: %w", err)
	}
	return nil
}

// removeFiles removes the older file first, so that a crash in between leaves the newest letters.
func removeFiles(dir string) error {
	if err := ifThere(os.Remove(filepath.Join(dir, previous))); err != nil {
		return err
	}
	return ifThere(os.Remove(filepath.Join(dir, current)))
}

func ifThere(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Remember durably replaces the bytes kept by the last call with b: the state that a queue needs
// after a restart, beside its letters. It implements [remotewrite.Memory].
func (s *Store) Remember(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.replace(filepath.Join(s.dir, memory), b); err != nil {
		return fmt.Errorf("keep the dead letters of an adopted target: %w", err)
	}
	return nil
}

func (s *Store) replace(path string, b []byte) error {
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(b); err == nil {
		err = s.sync(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	return syncDir(s.dir)
}

// Recall returns the bytes that Remember kept, nil if there are none.
func (s *Store) Recall() ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(s.dir, memory))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// Close closes the store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}
