// Package files reads regular files within a limit, and lists the files of a pattern.
package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// The errors of [Check], [Open] and [Read], beside those of [os].
var (
	ErrNotRegular = errors.New("is not a regular file")
	ErrTooLarge   = errors.New("has more")
)

// Check returns an error that wraps [ErrNotRegular] if there is something else than a regular file at path: to open a pipe could
// block forever. A link counts as the file that it leads to. A path that cannot be looked at is no error.
func Check(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s %w", path, ErrNotRegular)
	}
	return nil
}

// Open opens a regular file for reading. It does not block, even if a pipe takes the file's place after [Check].
func Open(path string) (*os.File, error) {
	if err := Check(path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // #nosec G304 -- callers name files of the configuration
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s %w", path, ErrNotRegular)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Read returns the content of a regular file of at most limit bytes.
func Read(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	tooLarge := fmt.Errorf("%s %w than %d bytes", path, ErrTooLarge, limit)
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > limit { // before memory is allocated for it
		return nil, tooLarge
	}
	var text bytes.Buffer
	text.Grow(int(info.Size()) + bytes.MinRead)
	if _, err := text.ReadFrom(io.LimitReader(f, limit+1)); err != nil {
		return nil, err
	}
	if int64(text.Len()) > limit { // it has grown meanwhile
		return nil, tooLarge
	}
	return text.Bytes(), nil
}
