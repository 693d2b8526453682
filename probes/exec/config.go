// Package exec is a probe that runs a command and reads the metrics that it prints, or that starts an exporter, keeps
// it running and scrapes it.
//
// The command is run as written, without a shell, in an environment with only the configured variables, and in its own
// process group, which is killed as a whole.
package exec

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/common/config"

	"hwsagent/internal/loopback"
	"hwsagent/internal/redact"
)

// Bounds of Config.MaxOutput, in bytes.
const (
	defaultOutput = 16 << 20
	mostOutput    = 256 << 20
)

// port is the placeholder for a free port in the command, its environment and the URL.
const port = "{{port}}"

// Config is the probe's own part of an entry of probes.
type Config struct {
	// Command is the absolute path of the program, and its arguments, passed unchanged; required.
	Command []string `yaml:"command"`
	// Env is the whole environment; values are secrets.
	Env map[string]config.Secret `yaml:"env,omitempty"`
	// Directory is the working directory; default /
	Directory string `yaml:"directory,omitempty"`
	// MaxOutput is the most bytes of output, or of an answer, in a round, up to 268435456; default 16777216
	MaxOutput int `yaml:"max_output,omitempty"`
	// ScrapeURL makes the command an exporter that keeps running and is scraped at that address of this host. `{{port}}`,
	// here and in command and env, becomes a free port.
	ScrapeURL URL `yaml:"scrape_url,omitempty"`

	// Hide holds further texts of command and address that must not be shown; may be nil.
	Hide *redact.Secrets `yaml:"-"`
}

// secrets returns the texts that must not be shown.
func (c *Config) secrets() *redact.Secrets {
	s := redact.Hold(c.with("1")).Secrets() // only with a port can the address be parsed
	s.Join(c.Hide)
	return s
}

// URL is an address whose user and query are hidden when printed.
type URL string

// String returns the address without user and query.
func (u URL) String() string { return redact.URL(string(u)) }

// MarshalYAML writes String.
func (u URL) MarshalYAML() (any, error) { return u.String(), nil }

// Validate reports mistakes in c.
func (c *Config) Validate() error {
	var errs []error
	switch {
	case len(c.Command) == 0:
		errs = append(errs, errors.New("exec needs a command; as in command: [/usr/local/bin/raid-metrics, --all]"))
	case !filepath.IsAbs(c.Command[0]):
		errs = append(errs, fmt.Errorf("command: %q is not an absolute path; there is no PATH and no shell", c.Command[0]))
	}
	for name := range c.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			errs = append(errs, fmt.Errorf("env: %q is not a name of a variable", name))
		}
	}
	if c.Directory != "" && !filepath.IsAbs(c.Directory) {
		errs = append(errs, fmt.Errorf("directory: %q is not an absolute path", c.Directory))
	}
	if c.MaxOutput < 0 || c.MaxOutput > mostOutput {
		errs = append(errs, fmt.Errorf("max_output: %d is not between 1 and %d", c.MaxOutput, mostOutput))
	}
	if c.ScrapeURL != "" {
		if err := checkURL(string(c.ScrapeURL)); err != nil {
			errs = append(errs, fmt.Errorf("scrape_url: %w", err))
		}
	} else if slices.ContainsFunc(c.Command, func(s string) bool { return strings.Contains(s, port) }) {
		errs = append(errs, fmt.Errorf("command: %s is for exporters; add scrape_url: http://127.0.0.1:%s/metrics", port, port))
	}
	return errors.Join(errs...)
}

// checkURL refuses an address of another host, because the exporter's answer becomes data of this host.
func checkURL(text string) error {
	u, err := url.Parse(strings.ReplaceAll(text, port, "1"))
	if err != nil {
		return errors.New("it is not a URL")
	}
	if u.Scheme != "http" || u.User != nil {
		return fmt.Errorf("%q is not http://127.0.0.1:port/path", URL(text))
	}
	if !loopback.Host(u.Hostname()) {
		return fmt.Errorf("%q is not on this host; the exporter that the command starts is: write 127.0.0.1", u.Hostname())
	}
	return nil
}

// limit returns MaxOutput or its default.
func (c *Config) limit() int {
	if c.MaxOutput == 0 {
		return defaultOutput
	}
	return c.MaxOutput
}

// with returns c with the placeholders replaced by a port.
func (c *Config) with(number string) Config {
	put := func(s string) string { return strings.ReplaceAll(s, port, number) }
	own := *c
	own.Command, own.Env, own.ScrapeURL = slices.Clone(c.Command), map[string]config.Secret{}, URL(put(string(c.ScrapeURL)))
	for i := range own.Command {
		own.Command[i] = put(own.Command[i])
	}
	for name, value := range c.Env {
		own.Env[name] = config.Secret(put(string(value)))
	}
	return own
}

// freePort returns a port of this host without a listener. Another program can take it before the exporter does, which
// then fails and is restarted with another port.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	_, number, err := net.SplitHostPort(l.Addr().String())
	return number, err
}
