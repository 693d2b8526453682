package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"

	"hwsagent/internal/files"
)

// Fingerprint is a hash of the content of files.
type Fingerprint [sha256.Size]byte

// Fingerprint reads the files of the configuration again and returns the hash of their content: the file itself, conf.d,
// the files of scrape_config_files, those that ${file:…} has read, and those that a failed load has named, see [Errors.Files].
// A file that cannot be read counts with its error.
// It fails if the configuration file or conf.d cannot be read, or if the file is empty or a pipe: an editor that has
// emptied a file on a full disk must not stop an agent.
func (c *Config) Fingerprint(failed []string) (Fingerprint, error) {
	h := sha256.New()
	add := func(name string, text []byte, err error) {
		if err != nil {
			text = []byte(err.Error())
		}
		for _, part := range [][]byte{[]byte(name), text} {
			h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
			h.Write(part)
		}
	}
	if _, err := readRegular(c.File, 0); err != nil { // reading a pipe would take its content away
		return Fingerprint{}, fmt.Errorf("%w: %w", ErrRead, err)
	}
	own, _, err := readAll(c.File)
	if err != nil {
		return Fingerprint{}, err
	}
	if len(bytes.TrimSpace(own[0].text)) == 0 {
		return Fingerprint{}, fmt.Errorf("%s is empty", c.File)
	}
	for _, f := range own {
		add(f.name, f.text, nil)
	}
	for _, pattern := range slices.Concat(c.ScrapeConfigFiles, failed) {
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(c.Dir, pattern)
		}
		names, err := files.Match(pattern)
		add(pattern, nil, err)
		for _, name := range names {
			text, err := readRegular(name, maxBytes)
			add(name, text, err)
		}
	}
	for _, name := range c.included {
		text, err := readSmallFile(name)
		add(name, text, err)
	}
	return Fingerprint(h.Sum(nil)), nil
}
