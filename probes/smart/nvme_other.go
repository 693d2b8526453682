//go:build !linux

package smart

import "errors"

// askNVMe works on Linux only.
func askNVMe(string, ...*adminCommand) error {
	return errors.New("this system has no NVMe commands: set nvme: smartctl")
}
