package host

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// file is a file of procfs that is read again in each round, into the same buffer.
type file struct {
	path string
	buf  []byte
}

// errTooLong means that a file is longer than allowed.
var errTooLong = errors.New("the file is too long")

// read returns the whole content, valid until the next call.
func (f *file) read() ([]byte, error) { return f.readUpTo(math.MaxInt) }

// readUpTo is read, but fails with errTooLong as soon as the content is longer than limit. It needs at most twice as
// much memory.
func (f *file) readUpTo(limit int) ([]byte, error) {
	fd, err := open(f.path)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	if f.buf == nil {
		f.buf = make([]byte, 4096)
	}
	n := 0
	for {
		m, err := readOnce(fd, f.buf[n:])
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: f.path, Err: err}
		}
		if m == 0 {
			return f.buf[:n], nil
		}
		if n += m; n > limit {
			return nil, &fs.PathError{Op: "read", Path: f.path, Err: errTooLong}
		}
		if n == len(f.buf) {
			f.buf = append(f.buf, make([]byte, len(f.buf))...)
		}
	}
}

// attribute returns a sysfs attribute without surrounding white space. It reads at most a page, the most that sysfs
// returns.
func attribute(path string) (string, error) {
	fd, err := open(path)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var page [4096]byte
	n, err := readOnce(fd, page[:])
	if err != nil {
		return "", &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return strings.TrimSpace(string(page[:n])), nil
}

// text returns an attribute, or "" if it does not exist or cannot be read.
func text(path string) string {
	s, err := attribute(path)
	if err != nil {
		return ""
	}
	return s
}

// number returns a numeric attribute (decimal, or hexadecimal after 0x) and whether it exists. Attributes come and go
// with drivers and their state, so a missing number is not an error.
func number(path string) (float64, bool) {
	s, err := attribute(path)
	if err != nil {
		return 0, false
	}
	return numeral(s)
}

// numeral parses a number as drivers print it.
func numeral(s string) (float64, bool) {
	if hex, ok := strings.CutPrefix(s, "0x"); ok {
		v, err := strconv.ParseUint(hex, 16, 64)
		return float64(v), err == nil
	}
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil
}

// list returns the sorted names in a directory except plain files: devices are directories or links to them. It returns
// errAbsent if the directory is missing or empty.
func list(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, optional(err)
	}
	var out []string
	for _, e := range entries {
		if !e.Type().IsRegular() {
			out = append(out, e.Name())
		}
	}
	if len(out) == 0 {
		return nil, errAbsent
	}
	return out, nil
}

// optional turns the error for a missing file into errAbsent.
func optional(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errAbsent
	}
	return err
}

func open(path string) (int, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			return fd, nil
		}
		if err != unix.EINTR { // a bare errno
			return -1, &fs.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

func readOnce(fd int, b []byte) (int, error) {
	for {
		n, err := unix.Read(fd, b)
		if err != unix.EINTR { // a bare errno
			return n, err
		}
	}
}
