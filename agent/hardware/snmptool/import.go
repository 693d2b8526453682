package snmptool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"hwsagent/internal/files"
	"hwsagent/probes/snmp/imports"
	"hwsagent/probes/snmp/library"
)

// Imported is the result of an import that was written to a directory.
type Imported struct {
	Directory string `json:"directory"`
	Removed   int    `json:"removed"` // files of an earlier import that are obsolete
	*imports.Result
}

// Import converts the profiles below one directory, or the LibreNMS in it, to definitions, and writes them to another directory,
// for snmp_definitions. mibs is a folder of MIBs for profiles, or "".
func Import(profiles, librenms, mibs, to string) (done Imported, err error) {
	done.Directory = to
	prefix := "librenms-"
	if librenms != "" {
		done.Result, err = imports.LibreNMS(librenms)
	} else {
		prefix = "profile-"
		done.Result, err = imports.Profiles(profiles, mibs)
	}
	if err != nil {
		return done, err
	}
	if len(done.Texts()) == 0 {
		return done, fmt.Errorf("no file below %s has hardware that can be carried over; nothing is written: name the directory of LibreNMS or of the profiles", profiles+librenms)
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return done, fmt.Errorf("make the directory of definitions: %w", err)
	}
	if done.Removed, err = replace(to, prefix, done.Texts()); err != nil {
		return done, err
	}
	if _, err := library.Load(to); err != nil { // including the user's own
		return done, fmt.Errorf("the definitions in %s cannot be read: %w", to, err)
	}
	return done, nil
}

// replace writes files, and removes obsolete files of an earlier import with the same prefix. It touches only files that
// an import wrote, and none before all new ones are on disk and load.
func replace(dir, prefix string, texts []imports.Text) (removed int, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, fmt.Errorf("read the directory of definitions: %w", err)
	}
	old := map[string]bool{}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) || !strings.HasSuffix(e.Name(), ".yaml") {
			continue
		}
		ours, err := isImported(filepath.Join(dir, e.Name()))
		if err != nil {
			return 0, err
		}
		if old[e.Name()] = ours; !ours {
			delete(old, e.Name())
			for _, t := range texts {
				if t.Name == e.Name() {
					return 0, fmt.Errorf("%s was not made by an import, and an import would replace it: move it, or name another directory with --to", filepath.Join(dir, e.Name()))
				}
			}
		}
	}
	if err := place(dir, texts); err != nil {
		return 0, err
	}
	for _, t := range texts {
		delete(old, t.Name)
	}
	for name := range old {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return removed, fmt.Errorf("remove a definition of an earlier import: %w", err)
		}
		removed++
	}
	return removed, nil
}

// isImported reports whether an import wrote the file.
func isImported(file string) (bool, error) {
	f, err := files.Open(file)
	if errors.Is(err, files.ErrNotRegular) {
		return false, fmt.Errorf("%w; move it, or name another directory", err)
	}
	if err != nil {
		return false, fmt.Errorf("read a definition of an earlier import: %w", err)
	}
	defer func() { _ = f.Close() }() // opened for reading only
	head := make([]byte, len(imports.Mark))
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("read a definition of an earlier import: %w", err)
	}
	return bytes.Equal(head[:n], []byte(imports.Mark)), nil
}

// place first writes the files to a temporary directory that no agent reads, and moves them once all are there and load.
func place(dir string, texts []imports.Text) (err error) {
	part, err := os.MkdirTemp(dir, ".import-")
	if err != nil {
		return fmt.Errorf("write definitions: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(part)) }()
	for _, t := range texts {
		if err := os.WriteFile(filepath.Join(part, t.Name), t.Text, 0o600); err != nil {
			return fmt.Errorf("write a definition: %w", err)
		}
	}
	if _, err := library.Load(part); err != nil {
		return fmt.Errorf("the definitions that were made cannot be read; nothing is written: %w", err)
	}
	for _, t := range texts {
		if err := os.Rename(filepath.Join(part, t.Name), filepath.Join(dir, t.Name)); err != nil {
			return fmt.Errorf("write a definition: %w", err)
		}
	}
	return nil
}

// Write prints the result for a person.
func (done *Imported) Write(w io.Writer) error {
	if err := done.Result.Write(w, done.Directory); err != nil {
		return err
	}
	if done.Removed > 0 {
		if _, err := fmt.Fprintf(w, "removed: %d files of an earlier import\n", done.Removed); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "to use them: snmp_definitions: [%s] in the probes of type snmp\n", done.Directory)
	return err
}
