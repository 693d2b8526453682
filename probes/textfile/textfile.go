// Package textfile is a probe that reads metrics from files that other programs write to a directory, as
// node_exporter's collector of that name does: *.prom in the text format, without timestamps.
package textfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/common/model"

	"hwsagent/internal/files"
	"hwsagent/internal/pages"
	"hwsagent/probes"
	"hwsagent/probes/exposition"
)

// Bounds of a round.
const (
	maxFiles     = 1000
	maxFileBytes = 16 << 20
)

// Config is the probe's own part of an entry of probes.
type Config struct {
	// Directory is the absolute path of the directory with the files, or a pattern such as `/srv/*/metrics`; required.
	Directory string `yaml:"directory"`
}

// Validate reports mistakes in c.
func (c *Config) Validate() error {
	if c.Directory == "" {
		return errors.New("textfile needs a directory; as in directory: /var/lib/node_exporter/textfile_collector")
	}
	if !filepath.IsAbs(c.Directory) {
		return fmt.Errorf("directory: %q is not an absolute path", c.Directory)
	}
	if _, err := filepath.Match(c.Directory, ""); err != nil {
		return fmt.Errorf("directory: %q is not a pattern: %w", c.Directory, err)
	}
	return nil
}

// Probe implements [probes.Probe].
type Probe struct {
	pattern      string
	mtime, error *probes.Family
	pages        pages.Buffers // buffers for files, reused in the next round
}

// New returns the probe.
func New(c Config) (*Probe, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Probe{
		pattern: c.Directory,
		mtime:   &probes.Family{Name: "node_textfile_mtime_seconds", Help: "Unixtime mtime of textfiles successfully read.", Type: model.MetricTypeGauge},
		error:   &probes.Family{Name: "node_textfile_scrape_error", Help: "1 if there was an error opening or reading a file, 0 otherwise", Type: model.MetricTypeGauge},
	}, nil
}

// Collect reads every file. A file that is unreadable or malformed only loses its own samples: it has no mtime,
// node_textfile_scrape_error is 1, and the error names it.
func (p *Probe) Collect(ctx context.Context, r *probes.Round) error {
	var errs []error
	files := 0
	for _, dir := range p.directories() {
		entries, err := os.ReadDir(dir)
		if err != nil {
			errs = append(errs, fmt.Errorf("read directory: %w", err))
			continue
		}
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), ".prom") {
				continue
			}
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("read %s: %w", dir, err)
			}
			if files++; files > maxFiles {
				errs = append(errs, fmt.Errorf("read %s: there are more than %d files; the others are left out", dir, maxFiles))
				break
			}
			path := filepath.Join(dir, e.Name())
			if err := p.file(ctx, path, r); err != nil {
				errs = append(errs, fmt.Errorf("read %s: %w", path, err))
			}
		}
	}
	failed := 0.0
	if len(errs) > 0 {
		failed = 1
	}
	r.Add(p.error, failed)
	if len(errs) > 0 {
		return fmt.Errorf("%w: %w", probes.ErrPartial, errors.Join(errs...))
	}
	return nil
}

// directories returns the directories that match the pattern, or the pattern itself, which then cannot be read.
func (p *Probe) directories() []string {
	dirs, err := filepath.Glob(p.pattern)
	if err != nil || len(dirs) == 0 {
		return []string{p.pattern}
	}
	slices.Sort(dirs)
	return dirs
}

// file adds the samples of a file and its mtime, or only returns an error.
func (p *Probe) file(ctx context.Context, path string, r *probes.Round) error {
	f, err := files.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	text := p.pages.Take()
	n, err := p.pages.Read(text, f, maxFileBytes+1, 0)
	failed := err != nil || n > maxFileBytes
	defer func() { p.pages.Give(text, failed) }()
	switch {
	case err != nil:
		return err
	case failed:
		return fmt.Errorf("the file has more than %d bytes", maxFileBytes)
	}
	if err := exposition.Parse(ctx, text.Bytes(), exposition.Options{NoTimestamps: true}, r); err != nil {
		return err
	}
	// Get the mtime after parsing, so that a failing file does not appear fresh.
	info, err := f.Stat()
	if err != nil {
		return err
	}
	r.Add(p.mtime, float64(info.ModTime().Unix()), "file", path)
	return nil
}
