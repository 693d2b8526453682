package raid

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// Config is the probe's own part of an entry of probes.
type Config struct {
	// Command is the program with its absolute path, optionally behind sudo:
	// `[/usr/bin/sudo, -n, /opt/MegaRAID/perccli/perccli64]`. There is no shell; default all known programs that are installed
	Command []string `yaml:"command,omitempty"`
	// ReadTimeout is how long one run of a program may take, at most half of the remaining round; default 20s
	ReadTimeout model.Duration `yaml:"read_timeout,omitempty"`
}

// Validate reports all errors at once, joined, each beginning with its key.
func (c *Config) Validate() error {
	var errs []error
	if n := len(c.Command); n > 0 {
		if !filepath.IsAbs(c.Command[0]) {
			errs = append(errs, fmt.Errorf("command: %q is not an absolute path; there is no PATH and no shell", c.Command[0]))
		}
		if dialectOf(c.Command[n-1]) == nil {
			errs = append(errs, fmt.Errorf("command: %q is not a known program; its last word must name one of %s", c.Command[n-1], strings.Join(programNames(), ", ")))
		}
	}
	if c.ReadTimeout < 0 {
		errs = append(errs, fmt.Errorf("read_timeout: %v is negative", c.ReadTimeout))
	}
	return errors.Join(errs...)
}

func (c *Config) limit() time.Duration {
	if c.ReadTimeout == 0 {
		return 20 * time.Second
	}
	return time.Duration(c.ReadTimeout)
}
