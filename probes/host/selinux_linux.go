package host

import (
	"errors"
	"io/fs"
	"os"
	"strings"
)

// newKernelHung reads how many tasks the kernel considered hung (since Linux 6.13).
func newKernelHung(e *environment) reader {
	tasks := counter("node_kernel_hung_tasks_total", "Tasks that the kernel found hung since the start.")
	return newOnce(e, func() (s samples, err error) {
		v, ok := number(e.proc("sys/kernel/hung_task_detect_count"))
		if !ok {
			return nil, errAbsent
		}
		s.add(tasks, v)
		return s, nil
	})
}

// newSELinux reads whether SELinux is on, and its mode: selinux(8), selinuxfs. The modes are 1 enforcing, 0 permissive,
// -1 disabled.
func newSELinux(e *environment) reader {
	enabled := gauge("node_selinux_enabled", "Whether SELinux is on (1) or off (0).")
	configured := gauge("node_selinux_config_mode", "The mode after a start: 1 enforcing, 0 permissive, -1 disabled.")
	current := gauge("node_selinux_current_mode", "The mode in force: 1 enforcing, 0 permissive, -1 disabled.")
	return newOnce(e, func() (s samples, err error) {
		mode, on := number(e.sys("fs/selinux/enforce"))
		s.add(enabled, boolean(on))
		if !on {
			return s, nil
		}
		s.add(current, mode)
		after, err := selinuxConfig(e.RootFSPath + "/etc/selinux/config")
		s.add(configured, after)
		return s, err
	})
}

// selinuxConfig returns the mode in the file; disabled if there is no file.
func selinuxConfig(path string) (float64, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return -1, nil
	}
	for line := range strings.Lines(string(b)) {
		switch value, ok := strings.CutPrefix(strings.TrimSpace(line), "SELINUX="); {
		case !ok:
		case strings.EqualFold(value, "enforcing"):
			return 1, nil
		case strings.EqualFold(value, "permissive"):
			return 0, nil
		}
	}
	return -1, err
}
