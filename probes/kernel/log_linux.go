package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// kmsg is /dev/kmsg, or in tests something that reads like it.
type kmsg struct {
	descriptor int
	buffer     [maxRecord]byte
}

// openLog opens the log at the oldest record that the kernel has.
func openLog() (source, error) {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("open /dev/kmsg: %w; under the package's service it needs the drop-in kernel.conf: docs/probes/kernel.md", err)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("open /dev/kmsg: %w; it needs CAP_SYSLOG: docs/probes/kernel.md has the drop-in", err)
	case err != nil:
		return nil, fmt.Errorf("open /dev/kmsg: %w", err)
	}
	return &kmsg{descriptor: fd}, nil
}

// Next reads one record; it never waits.
func (k *kmsg) Next() ([]byte, error) {
	n, err := unix.Read(k.descriptor, k.buffer[:])
	switch {
	case errors.Is(err, unix.EAGAIN):
		return nil, errEnd
	case errors.Is(err, unix.EPIPE):
		return nil, errOverwritten
	case errors.Is(err, unix.EINTR):
		return nil, errOverwritten // the read is repeated
	case err != nil:
		return nil, err
	case n == 0:
		return nil, errEnd
	}
	return k.buffer[:n], nil
}

// Close implements source.
func (k *kmsg) Close() error { return unix.Close(k.descriptor) }

// bootID returns the number that the kernel chooses at each boot.
func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}
