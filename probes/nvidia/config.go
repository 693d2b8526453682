package nvidia

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/prometheus/common/model"
)

// Config is the probe's own part of an entry of probes.
type Config struct {
	// Command is nvidia-smi with its absolute path, and any words before it; default [/usr/bin/nvidia-smi]. There is no
	// shell.
	Command []string `yaml:"command,omitempty"`
	// ReadTimeout is how long one run of it may take; default 10s.
	ReadTimeout model.Duration `yaml:"read_timeout,omitempty"`
	// Processes says whether to report the memory of each process on a GPU, with its number and name.
	Processes bool `yaml:"processes,omitempty"`
	// NVLink says whether to run nvidia-smi a second and third time, for the links between GPUs and their errors.
	NVLink bool `yaml:"nvlink,omitempty"`
}

// Validate reports every mistake at once, joined, each beginning with its key.
func (c *Config) Validate() error {
	var errs []error
	if len(c.Command) > 0 && !filepath.IsAbs(c.Command[0]) {
		errs = append(errs, fmt.Errorf("command: %q is not an absolute path; there is no PATH and no shell", c.Command[0]))
	}
	if c.ReadTimeout < 0 {
		errs = append(errs, fmt.Errorf("read_timeout: %v is negative", c.ReadTimeout))
	}
	return errors.Join(errs...)
}

func (c *Config) command() []string {
	if len(c.Command) == 0 {
		return []string{"/usr/bin/nvidia-smi"}
	}
	return c.Command
}

func (c *Config) limit() time.Duration {
	if c.ReadTimeout == 0 {
		return 10 * time.Second
	}
	return time.Duration(c.ReadTimeout)
}
