package config

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"hwsagent/probes/devices"
)

// ErrRead means that a file of the configuration cannot be read.
var ErrRead = errors.New("read configuration")

// Load reads, expands and checks a configuration file and the files *.yaml in the directory conf.d beside it, in order
// of name. env looks up environment variables (os.LookupEnv). It reads files named by ${file:…}, but not those that
// keys name (certificates, tokens), see [Config.NamedFiles]. If the configuration has mistakes, the error is an *[Errors] with all
// of them; another error means that a file cannot be read. Warnings come with and without an error.
func Load(path string, env func(string) (string, bool)) (*Config, []Warning, error) {
	return loadFile(path, env, readSmallFile)
}

// LoadWithoutFiles is [Load] for a machine that need not have the files that ${file:…} names: it reads none of them.
func LoadWithoutFiles(path string, env func(string) (string, bool)) (*Config, []Warning, error) {
	return loadFile(path, env, placeholder)
}

// placeholder stands for the contents of a file that need not exist.
func placeholder(string) ([]byte, error) { return []byte("placeholder"), nil }

func loadFile(path string, env func(string) (string, bool), readFile func(string) ([]byte, error)) (*Config, []Warning, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrRead, err)
	}
	files, early, err := readAll(path)
	if err != nil {
		return nil, nil, err
	}
	var included []string
	cfg, warns, err := loadTexts(files, filepath.Dir(abs), env, func(name string) ([]byte, error) {
		included = append(included, name)
		return readFile(name)
	})
	if mistakes, ok := errors.AsType[*Errors](err); ok {
		mistakes.files = append(mistakes.files, included...)
	}
	if cfg != nil {
		cfg.File, cfg.included = abs, included
		for _, f := range files[1:] {
			cfg.Further = append(cfg.Further, f.name)
		}
	}
	return cfg, append(early, warns...), err
}

// LoadBytes is [Load] for a text that has been read already. path appears in messages, and its directory resolves
// relative paths in the text.
func LoadBytes(path string, text []byte, env func(string) (string, bool)) (*Config, []Warning, error) {
	cfg, warns, err := loadTexts([]fileText{{path, text}}, filepath.Dir(path), env, readSmallFile)
	if cfg != nil {
		cfg.File = path
	}
	return cfg, warns, err
}

// loadTexts parses, expands, decodes, completes and checks the files. Each stage after the first continues after
// mistakes, so that all are reported at once. Relative paths are relative to dir, in whichever file they are.
func loadTexts(files []fileText, dir string, env func(string) (string, bool), readFile func(string) ([]byte, error)) (*Config, []Warning, error) {
	d, err := parseAll(files)
	if err != nil {
		return nil, nil, err
	}
	cfg := defaults()
	cfg.Dir = dir
	x := &expander{env: env, readFile: readFile, dir: dir}
	if d.root != nil {
		d.ignorePrometheus()
		x.expand(d)
		d.decode(cfg)
		cfg.hideGiven(d)
	}
	cfg.fill(d)
	cfg.decodeScrape(d, x)
	cfg.validate(d)
	if err := d.allFailed(); err != nil {
		if mistakes, ok := errors.AsType[*Errors](err); ok {
			mistakes.files = slices.Clone(cfg.ScrapeConfigFiles)
		}
		return nil, d.warnings(), err
	}
	cfg.absolutePaths()
	cfg.entries = cfg.Probes
	cfg.listProblems = cfg.ExpandDevices(new(devices.Files))
	return cfg, d.warnings(), nil
}

func readLimited(r io.Reader, limit int) ([]byte, error) {
	return io.ReadAll(io.LimitReader(r, int64(limit)+1))
}
