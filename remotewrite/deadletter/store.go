// Package deadletter keeps the samples that a remote-write receiver refused, with its
// answer, in a bounded store of JSON lines: one directory for each target.
//
// There are two files. Letters are appended to letters.jsonl; when it reaches half
// of the bounds, it replaces letters.old.jsonl. So
// the newest letters are kept, at least half of the bounds' worth, and people can read
// them with any tool.
package deadletter

import (
	"encoding/json"
	"errors"
	"fmt"
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
	closed bool
	size   int64  // of the current file: whole lines only
	counts [2]int // letters in the current and the previous file
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
	s := &Store{dir: dir, o: o, sync: (*os.File).Sync, size: -1}
	f, err := s.open()
	if err != nil {
		return nil, fmt.Errorf("open dead letters: %w", err)
	}
	return s, f.Close()
}

// open opens the current file. It looks at the files anew if the current one is not as the store left it: a person has
// removed or emptied it, or a write failed half-way.
func (s *Store) open() (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(s.dir, current), os.O_RDWR, 0)
	if err == nil {
		info, err := f.Stat()
		if err == nil && info.Size() == s.size {
			return f, nil
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
	for _, path := range []string{s.dir, filepath.Join(s.dir, current), filepath.Join(s.dir, previous)} {
		if err := noLink(path); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	old, err := openIfThere(filepath.Join(s.dir, previous))
	if err != nil {
		return nil, err
	}
	letters, _, err := scan(old)
	s.counts[1] = len(letters)
	if err := errors.Join(err, shut(old)); err != nil {
		return nil, err
	}
	if f, err = os.OpenFile(filepath.Join(s.dir, current), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, err
	}
	letters, s.size, err = scan(f)
	s.counts[0] = len(letters)
	if err == nil {
		err = errors.Join(f.Truncate(s.size), syncDir(s.dir))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
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
	if s.closed {
		return fs.ErrClosed
	}
	f, err := s.open()
	if err != nil {
		return err
	}
	if s.size > 0 && (s.size+int64(len(lines)) > s.o.MaxBytes/2 || s.counts[0]+n > s.o.MaxLetters/2) {
		// The current file becomes the previous one.
		if err := errors.Join(f.Close(), os.Rename(filepath.Join(s.dir, current), filepath.Join(s.dir, previous))); err != nil {
			return err
		}
		if f, err = s.open(); err != nil {
			return err
		}
	}
	if _, err = f.WriteAt(lines, s.size); err == nil {
		err = s.sync(f)
	}
	if err != nil {
		return errors.Join(err, f.Truncate(s.size), f.Close())
	}
	s.size += int64(len(lines))
	s.counts[0] += n
	return f.Close()
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
	if s.closed {
		return 0, fmt.Errorf("clear dead letters: %w", fs.ErrClosed)
	}
	n = s.counts[0] + s.counts[1]
	if err := removeFiles(s.dir); err != nil {
		return 0, fmt.Errorf("clear dead letters: %w", err)
	}
	s.size, s.counts = -1, [2]int{}
	return n, nil
}

// Remove removes a store that is not open, with its directory.
func Remove(dir string) error {
	err := removeFiles(dir)
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

// Close makes the store take no more letters.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}
