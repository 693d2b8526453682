package kernel

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Config is the probe's own part of an entry of probes.
type Config struct {
	// Events are the kinds of events to count; default all of `nvidia_xid`, `machine_check`, `apei`, `pcie_aer`, `nvme`, `ata`,
	// `scsi`, `block`, `filesystem`, `oom_kill`
	Events []string `yaml:"events,omitempty"`
	// Exclude is a regular expression (RE2, not anchored) of messages that do not count.
	Exclude string `yaml:"exclude,omitempty"`
}

// Validate reports every mistake at once, joined, each beginning with its key.
func (c *Config) Validate() error {
	var errs []error
	for i, name := range c.Events {
		if !slices.Contains(events(), name) {
			errs = append(errs, fmt.Errorf("events[%d]: %q is none of %s", i, name, strings.Join(events(), ", ")))
		}
	}
	if _, err := regexp.Compile(c.Exclude); err != nil {
		errs = append(errs, fmt.Errorf("exclude: %w", err))
	}
	return errors.Join(errs...)
}
