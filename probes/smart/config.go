package smart

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// Config is the probe's part of an entry of probes.
type Config struct {
	// Command is smartctl with its absolute path, optionally behind sudo: `[/usr/bin/sudo, -n, /usr/sbin/smartctl]`. There
	// is no shell; default `[/usr/sbin/smartctl]`
	Command []string `yaml:"command,omitempty"`
	// Devices are the disks to read; default all that `smartctl --scan` finds
	Devices []Device `yaml:"devices,omitempty"`
	// Scan reads the scanned disks, too, beside devices.
	Scan bool `yaml:"scan,omitempty"`
	// Exclude is a regular expression (RE2, not anchored) of paths to leave out.
	Exclude string `yaml:"exclude,omitempty"`
	// NVMe is how NVMe disks are read: `ioctl` sends the commands without smartctl; default smartctl
	NVMe string `yaml:"nvme,omitempty"`
	// ReadTimeout is how long one disk may take, at most half of the remaining round; default 30s
	ReadTimeout model.Duration `yaml:"read_timeout,omitempty"`
}

// The values of nvme.
const (
	nvmeSmartctl = "smartctl"
	nvmeIoctl    = "ioctl"
)

// Device is a disk.
type Device struct {
	Device string `yaml:"device"`         // the path, such as /dev/sda
	Type   string `yaml:"type,omitempty"` // for smartctl -d, such as sat or megaraid,3; default: smartctl detects it
}

// key identifies a device: members of a controller share a path.
func (d Device) key() string { return d.Device + " " + d.Type }

// label returns the value of the label device, by smartctl_exporter's rule: sda, nvme0, and for a member of a controller its path and
// type: bus_0_megaraid_1.
func (d Device) label() string {
	name := strings.TrimPrefix(d.Device, "/dev/")
	for _, by := range [...]string{"disk/by-id/", "disk/by-path/"} {
		name = strings.TrimPrefix(name, by)
	}
	name = strings.ReplaceAll(name, "/", "_")
	if d.member() {
		name += "_" + strings.ReplaceAll(d.Type, ",", "_")
	}
	return name
}

// member reports whether the type selects one of several disks behind the path. The types sat and nvme have other parameters.
func (d Device) member() bool {
	kind, _, selects := strings.Cut(d.Type, ",")
	return selects && (strings.Contains(d.Type, "+") || kind != "sat" && kind != "nvme" && kind != "sntjmicron")
}

// of reports whether the disk is a member of a controller of that type, such as megaraid.
func (d Device) of(controller string) bool {
	_, after, tunnelled := strings.Cut(d.Type, "+") // as in sat+megaraid,3
	if !tunnelled {
		after = d.Type
	}
	return strings.HasPrefix(after, controller+",")
}

// deviceType matches arguments of smartctl -d, so that no word of a configuration or scan can act as an option.
var deviceType = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9,+/._:-]*$`)

func (d Device) check() error {
	switch {
	case !strings.HasPrefix(d.Device, "/dev/") || strings.ContainsAny(d.Device, "\x00\n"):
		return fmt.Errorf("device: %q is not a path below /dev", d.Device)
	case d.Type != "" && !deviceType.MatchString(d.Type):
		return fmt.Errorf("type: %q is not a type of smartctl -d, such as sat or megaraid,3", d.Type)
	}
	return nil
}

// Validate reports all errors at once, joined, each beginning with its key.
func (c *Config) Validate() error {
	var errs []error
	if len(c.Command) > 0 && !filepath.IsAbs(c.Command[0]) {
		errs = append(errs, fmt.Errorf("command: %q is not an absolute path; there is no PATH and no shell", c.Command[0]))
	}
	if _, err := regexp.Compile(c.Exclude); err != nil {
		errs = append(errs, fmt.Errorf("exclude: %w", err))
	}
	if c.ReadTimeout < 0 {
		errs = append(errs, fmt.Errorf("read_timeout: %v is negative", c.ReadTimeout))
	}
	if c.NVMe != "" && c.NVMe != nvmeSmartctl && c.NVMe != nvmeIoctl {
		errs = append(errs, fmt.Errorf("nvme: %q is neither smartctl nor ioctl", c.NVMe))
	}
	seen := make(map[string]bool)
	for i, d := range c.Devices {
		if err := d.check(); err != nil {
			errs = append(errs, fmt.Errorf("devices[%d].%w", i, err))
		}
		if seen[d.key()] {
			errs = append(errs, fmt.Errorf("devices[%d]: %s is there twice", i, d.Device))
		}
		seen[d.key()] = true
	}
	return errors.Join(errs...)
}

// command returns Command or its default.
func (c *Config) command() []string {
	if len(c.Command) == 0 {
		return []string{"/usr/sbin/smartctl"}
	}
	return c.Command
}

func (c *Config) limit() time.Duration {
	if c.ReadTimeout == 0 {
		return 30 * time.Second
	}
	return time.Duration(c.ReadTimeout)
}
