package deadletter

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"hwsagent/remotewrite"
)

// List reads the letters in a store's directory, oldest first, whether or not an agent
// is running.
func List(dir string) ([]remotewrite.Letter, error) {
	letters, err := both(dir)
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return letters, nil
}

// both reads both files as they were at one moment: an agent may replace them between two of the calls here.
func both(dir string) (letters []remotewrite.Letter, err error) {
	for range 10 {
		now, err := openIfThere(filepath.Join(dir, current))
		if err != nil {
			return nil, err
		}
		old, err := openIfThere(filepath.Join(dir, previous))
		if err != nil {
			return nil, errors.Join(err, shut(now))
		}
		same := sameFile(now, filepath.Join(dir, current))
		letters, _, err := scan(old)
		newest, _, err2 := scan(now)
		if err = errors.Join(err, err2, shut(old), shut(now)); err != nil || same {
			return append(letters, newest...), err
		}
	}
	return nil, errors.New("the agent replaces their files faster than they can be read: try again")
}

// openIfThere opens a file; it returns nil if there is none.
func openIfThere(path string) (*os.File, error) {
	f, err := os.Open(path)
	return f, ifThere(err)
}

// shut closes a file, if there is one.
func shut(f *os.File) error {
	if f == nil {
		return nil
	}
	return f.Close()
}

// sameFile reports whether f, nil for no file, is still the file of that path.
func sameFile(f *os.File, path string) bool {
	there, err := os.Stat(path)
	if f == nil || err != nil {
		return f == nil && errors.Is(err, fs.ErrNotExist)
	}
	mine, err := f.Stat()
	return err == nil && os.SameFile(mine, there)
}

// scan reads the letters in a file, nil for no file; whole is the size of its whole lines. It skips lines that cannot be read.
func scan(f *os.File) (letters []remotewrite.Letter, whole int64, err error) {
	if f == nil {
		return nil, 0, nil
	}
	r, read := bufio.NewReaderSize(f, 2*maxLine), int64(0)
	for {
		line, err := r.ReadSlice('\n')
		read += int64(len(line))
		var l remotewrite.Letter
		switch {
		case err == nil:
			if whole = read; json.Unmarshal(line, &l) == nil {
				letters = append(letters, l)
			}
		case errors.Is(err, io.EOF):
			return letters, whole, nil // a line without a newline is incomplete
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, 0, err
		}
	}
}
