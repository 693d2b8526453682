package library

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed definitions/*.yaml
var embedded embed.FS

// Library is a consistent set of definitions. It is immutable: devices share it.
type Library struct {
	definitions []*Definition // by name
	byName      map[string]*Definition
	sum         hash.Hash // of the users' files
	own         bool      // there are users' files
}

// maxFiles bounds the files of one directory.
const maxFiles = 2000

// Load reads the embedded definitions and then the files *.yaml and *.yml of directories, in order; a later
// definition replaces an earlier one of the same name. The error lists all errors of all files.
func Load(dirs ...string) (*Library, error) {
	own, err := fs.Sub(embedded, "definitions")
	if err != nil {
		return nil, fmt.Errorf("open the built-in definitions: %w", err)
	}
	l := &Library{byName: map[string]*Definition{}, sum: sha256.New()}
	var errs []error
	errs = append(errs, l.read(own, ""))
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err != nil {
			errs = append(errs, fmt.Errorf("read definitions: %w", err))
		} else if !info.IsDir() {
			errs = append(errs, fmt.Errorf("read definitions: %s is not a directory", dir))
		} else {
			errs = append(errs, l.read(os.DirFS(dir), dir))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	l.definitions = slices.SortedFunc(maps.Values(l.byName), func(a, b *Definition) int { return strings.Compare(a.Name, b.Name) })
	return l, l.check()
}

// read reads the definitions of one directory.
func (l *Library) read(dir fs.FS, name string) error {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return fmt.Errorf("read definitions: %w", err)
	}
	var errs []error
	here := map[string]string{}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); e.IsDir() || ext != ".yaml" && ext != ".yml" {
			continue
		}
		file := filepath.Join(name, e.Name())
		if len(here) == maxFiles {
			return fmt.Errorf("read definitions: %s has more than %d files", name, maxFiles)
		}
		info, err := fs.Stat(dir, e.Name()) // of a link's destination
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%s is not a regular file", file) // reading a pipe may block forever
		}
		if err == nil && info.Size() > maxFileBytes {
			err = fmt.Errorf("%s has %d bytes, more than %d; split it", file, info.Size(), maxFileBytes)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		text, err := fs.ReadFile(dir, e.Name())
		if err != nil {
			errs = append(errs, fmt.Errorf("read definitions: %w", err))
			continue
		}
		if name != "" {
			l.own = true
			_, _ = l.sum.Write(text) // a hash never fails
		}
		d, err := Parse(file, text)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if first := here[d.Name]; first != "" {
			errs = append(errs, fmt.Errorf("%s:%d: %s has a definition %s, too", file, d.line, first, d.Name))
		}
		here[d.Name] = file
		l.byName[d.Name] = d
	}
	return errors.Join(errs...)
}

// check finds includes of missing definitions. Cycles are harmless: a definition counts once.
func (l *Library) check() error {
	var errs []error
	for _, d := range l.definitions {
		for verb, names := range map[string][]string{"includes": d.includes, "replaces": d.replaces} {
			for _, name := range names {
				if l.byName[name] == nil {
					errs = append(errs, fmt.Errorf("%s:%d: %s %s, which no file defines", d.file, d.line, verb, name))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// Version differs between libraries whose users' files differ; it is empty without such files.
func (l *Library) Version() string {
	if !l.own {
		return ""
	}
	return hex.EncodeToString(l.sum.Sum(nil))
}

// Definitions returns all definitions, by name.
func (l *Library) Definitions() []*Definition { return l.definitions }
