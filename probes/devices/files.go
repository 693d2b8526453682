package devices

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"hwsagent/internal/files"
)

// maxFile bounds a file of targets: MaxListed targets with many labels take less than 4 MiB.
const maxFile = 16 << 20

// maxFiles bounds how many files one pattern may match.
const maxFiles = 1000

// Files reads files of targets, and keeps the last good content of a broken file. The zero value is ready for use, and
// safe for concurrent use.
type Files struct {
	mu      sync.Mutex
	known   map[string]*file // by path
	changes uint64
}

// file is the state of one file.
type file struct {
	sum    [sha256.Size]byte // digest of the text read last
	read   bool              // sum is set
	groups []Group           // the last good content
	good   bool              // there was good content
	err    error             // error of the last reading
}

// Content is the last good content of a file.
type Content struct {
	Path   string
	Groups []Group
}

// Problem is something wrong with a file of targets.
type Problem struct{ File, Text string }

// Error gives file and text.
func (p Problem) Error() string { return p.File + ": " + p.Text }

// Read reads the files that pattern matches now. A missing file with a plain path counts as broken, so its devices
// stay; one of a pattern takes its devices with it.
func (f *Files) Read(pattern string) (contents []Content, problems []Problem) {
	f.mu.Lock()
	defer f.mu.Unlock()
	paths, err := f.expand(pattern)
	if err != nil {
		problems = append(problems, Problem{pattern, err.Error()})
	}
	for _, path := range paths {
		k := f.look(path)
		if k.good {
			contents = append(contents, Content{path, k.groups})
		}
		if k.err != nil {
			problems = append(problems, Problem{path, k.wrong()})
		}
	}
	return contents, problems
}

// Changes checks the files of the patterns and returns a number that changes exactly if the result of Read may change.
func (f *Files) Changes(patterns []string) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range patterns {
		paths, _ := f.expand(p) // Read tells
		for _, path := range paths {
			f.look(path)
		}
	}
	return f.changes
}

// wrong describes the consequences of the file's error for its devices.
func (k *file) wrong() string {
	if !k.good {
		return k.err.Error() + "; its devices are not read until the file is correct"
	}
	n := 0
	for _, g := range k.groups {
		n += len(g.Targets)
	}
	return fmt.Sprintf("%v; the %d targets that it had before stay", k.err, n)
}

// expand returns the files that pattern matches; with an error, perhaps those that it matched before. It drops the state
// of files that no longer match.
func (f *Files) expand(pattern string) ([]string, error) {
	if !strings.ContainsAny(pattern, `*?[`) {
		return []string{pattern}, nil
	}
	paths, err := files.Match(pattern)
	if err != nil {
		for p := range f.known {
			if files.Matches(pattern, p) {
				paths = append(paths, p)
			}
		}
		slices.Sort(paths)
		return paths, fmt.Errorf("list the files: %w", err)
	}
	if len(paths) > maxFiles {
		return paths[:maxFiles], fmt.Errorf("names %d files; only the first %d are read", len(paths), maxFiles)
	}
	named := map[string]bool{}
	for _, p := range paths {
		named[p] = true
	}
	for p := range f.known {
		if files.Matches(pattern, p) && !named[p] {
			delete(f.known, p)
			f.changes++
		}
	}
	if len(paths) == 0 {
		return nil, errors.New("no file matches the pattern")
	}
	return paths, nil
}

// look reads the file, and parses it if its text has changed.
func (f *Files) look(path string) *file {
	k := f.known[path]
	if k == nil {
		k = &file{}
		if f.known == nil {
			f.known = map[string]*file{}
		}
		f.known[path] = k
		f.changes++
	}
	text, err := readFile(path)
	if err != nil {
		if k.err == nil || k.err.Error() != err.Error() {
			f.changes++
		}
		k.err, k.read = err, false
		return k
	}
	sum := sha256.Sum256(text)
	if k.read && sum == k.sum {
		return k
	}
	f.changes++
	k.sum, k.read = sum, true
	groups, err := Parse(text)
	if k.err = err; err == nil {
		k.groups, k.good = groups, true
	}
	return k
}

// readFile reads a regular file.
func readFile(path string) ([]byte, error) {
	text, err := files.Read(path, maxFile)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, errors.New("the file does not exist")
	case errors.Is(err, files.ErrNotRegular):
		return nil, files.ErrNotRegular
	case errors.Is(err, files.ErrTooLarge):
		return nil, fmt.Errorf("is longer than %d MiB", maxFile>>20)
	case err != nil:
		return nil, fmt.Errorf("read the file: %w", withoutPath(err))
	}
	return text, nil
}

// withoutPath returns the cause of an error that already mentions the path.
func withoutPath(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// Parse reads a list of groups in YAML or JSON (which is YAML). An empty file is an error: a program that rewrites it
// in place may not be done yet.
func Parse(text []byte) ([]Group, error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errors.New("the file is empty; write [] for no devices")
	}
	var groups []Group
	if err := yaml.Load(text, &groups, yaml.WithKnownFields()); err != nil {
		return nil, fmt.Errorf("parse: %w; a file of targets has the form [{targets: [192.0.2.7], labels: {site: fra1}}]", err)
	}
	if groups == nil {
		return nil, errors.New("the file has no list; write [] for no devices")
	}
	for i, g := range groups {
		for name, value := range g.Labels {
			if why := wrongLabel(name, value); why != "" {
				return nil, fmt.Errorf("group %d, label %q: %s", i+1, name, why)
			}
		}
	}
	return groups, nil
}
