package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Match returns the files that a pattern of [filepath.Match] names, in ascending order; none if there is no such file or
// directory. Unlike [filepath.Glob] it returns an error if the directory cannot be read, for example because no file
// descriptors are left: a caller would otherwise take all files for removed. If the name of the directory has wildcards
// itself, Match is filepath.Glob, which ignores such errors.
func Match(pattern string) (names []string, err error) {
	const special = `*?[\`
	if _, err := filepath.Match(pattern, ""); err != nil {
		return nil, err
	}
	dir, last := filepath.Split(pattern)
	switch {
	case strings.ContainsAny(dir, special):
		return filepath.Glob(pattern)
	case !strings.ContainsAny(last, special):
		if _, err := os.Lstat(pattern); err != nil {
			return nil, unlessMissing(err)
		}
		return []string{pattern}, nil
	}
	entries, err := os.ReadDir(filepath.Clean(dir))
	if err != nil {
		return nil, unlessMissing(err)
	}
	for _, e := range entries {
		if name := filepath.Join(dir, e.Name()); Matches(pattern, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// Matches reports whether a name that [Match] returned for some pattern is of this one.
func Matches(pattern, name string) bool {
	ok, err := filepath.Match(filepath.Clean(pattern), name)
	return name == pattern || ok && err == nil
}

// unlessMissing returns nil for an error that says that there is no such file, else err.
func unlessMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return err
}
