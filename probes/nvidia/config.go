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
	// Command is nvidia-smi with its absolute path, and any words before it. There is no shell; default
	// `[/usr/bin/nvidia-smi]`
	Command []string `yaml:"command,omitempty"`
	// ReadTimeout is how long one run may take; default 10s
	ReadTimeout model.Duration `yaml:"read_timeout,omitempty"`
	// Processes sends the memory of each process on a GPU, with its number and name: each new process makes new series.
	Processes bool `yaml:"processes,omitempty"`
	// NVLink runs nvidia-smi twice more, for the links between GPUs and their errors.
	NVLink bool `yaml:"nvlink,omitempty"`
	// Names is whose names the metrics beside `hw_*` have: `dcgm` sends dcgm-exporter's `DCGM_FI_*` in place of `nvidia_*`, for its dashboards;
	// default nvidia
	Names string `yaml:"names,omitempty"`
}

// The values of names.
const (
	namesNvidia = "nvidia"
	namesDCGM   = "dcgm"
)

// Validate reports every mistake at once, joined, each beginning with its key.
func (c *Config) Validate() error {
	var errs []error
	if len(c.Command) > 0 && !filepath.IsAbs(c.Command[0]) {
		errs = append(errs, fmt.Errorf("command: %q is not an absolute path; there is no PATH and no shell", c.Command[0]))
	}
	if c.ReadTimeout < 0 {
		errs = append(errs, fmt.Errorf("read_timeout: %v is negative", c.ReadTimeout))
	}
	switch c.Names {
	case "", namesNvidia, namesDCGM:
	default:
		errs = append(errs, fmt.Errorf("names: %q is neither nvidia nor dcgm", c.Names))
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
