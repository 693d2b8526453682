//go:build !linux

package smart

import "errors"

// askNVMe is there on Linux only.
func askNVMe(string, ...*adminCommand) error {
	return errors.New("this system has no NVMe commands: set nvme: smartctl")
}
