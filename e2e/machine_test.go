//go:build linux

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// machine is a Debian with a systemd of its own: this host's root file system, on which a layer in memory keeps
// each change, with namespaces for processes, mounts, network, host name and control groups. It ends with its test.
type machine struct {
	t    *testing.T
	init int    // the PID of its systemd, as this host sees it
	root string // its root directory, as this host sees it
}

// bootScript makes the machine's root file system in the directory $1 and becomes its systemd. What systemd does to
// a kernel or to devices at a boot is left out: they are this host's.
const bootScript = `set -e
mount -t tmpfs -o size=4g,mode=755 tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root" "$1/cgroup"
mount -t cgroup2 cgroup2 "$1/cgroup"
mkdir -p "$1/cgroup/$2"
echo $$ >"$1/cgroup/$2/cgroup.procs"
mount -t overlay -o lowerdir=/,upperdir="$1/upper",workdir="$1/work" overlay "$1/root"
ip link set lo up
cd "$1/root"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mount --rbind /dev dev
rm -rf etc/systemd/system/*.wants lib/systemd/system/sysinit.target.wants lib/systemd/system/multi-user.target.wants
for unit in systemd-sysctl systemd-binfmt systemd-udevd systemd-modules-load systemd-random-seed systemd-logind systemd-resolved systemd-networkd prometheus-node-exporter; do
	ln -sf /dev/null etc/systemd/system/$unit.service
done
mkdir old
pivot_root . old # not a chroot, in which no service could have PrivateUsers=
umount -l /old
rmdir /old
mount --make-rshared / # as at a real boot: what systemd mounts for a service reaches it
touch /run/booted
exec unshare --cgroup sh -c 'mount -t cgroup2 cgroup2 /sys/fs/cgroup && exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=test chroot . /lib/systemd/systemd --unit=basic.target --show-status=0'
`

// startMachine boots a machine and waits until its systemd answers.
func startMachine(t *testing.T) *machine {
	t.Helper()
	for _, program := range []string{"unshare", "nsenter", "systemctl", "ip"} {
		needs(t, program)
	}
	dir := t.TempDir()
	group := fmt.Sprintf("hwsagent-test-%d", os.Getpid())
	var said bytes.Buffer
	cmd := exec.Command("unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "--kill-child", "--propagation", "private",
		"sh", "-c", bootScript, "sh", dir, group)
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // whatever ends the test ends the machine
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }() // how it ended is shown by what it said
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // its children end with it
		<-ended
		removeGroups(t, dir, group)
	})
	m := &machine{t: t}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) { // the pace of asking
		select {
		case <-ended:
			cannot(t, "needs root with all capabilities, to boot a systemd in namespaces: "+said.String())
		default:
		}
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", cmd.Process.Pid))
		if err == nil {
			m.init, _ = strconv.Atoi(strings.TrimSpace(string(children)))
		}
		if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", m.init)); err == nil && strings.TrimSpace(string(name)) == "systemd" {
			m.root = fmt.Sprintf("/proc/%d/root", m.init)
			if out, code := m.try("systemctl is-system-running"); code == 0 || strings.Contains(out, "degraded") {
				return m
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the machine's systemd does not answer: %s", said.String())
		}
	}
}

// cannot skips a test for want of something that is named; with CI=true that is a failure.
func cannot(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why + ", and this is CI")
	}
	t.Skip(why)
}

// removeGroups removes the control groups of a machine that has ended.
func removeGroups(t *testing.T, dir, group string) {
	t.Helper()
	const script = `mount -t cgroup2 cgroup2 "$1" && find "$1/$2" -depth -type d -exec rmdir {} +`
	eventually(t, 10*time.Second, func() string {
		if out, err := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", dir, group).CombinedOutput(); err != nil {
			return fmt.Sprintf("remove the control groups: %v %s", err, out)
		}
		return ""
	})
}

// try runs a script on the machine as root, in its root directory. It returns what the script printed and its exit code.
func (m *machine) try(script string) (out string, code int) {
	m.t.Helper()
	ctx, stop := context.WithTimeout(m.t.Context(), 3*time.Minute)
	defer stop()
	ns := fmt.Sprintf("/proc/%d/ns/", m.init)
	cmd := exec.CommandContext(ctx, "nsenter", "--mount="+ns+"mnt", "--pid="+ns+"pid", "--net="+ns+"net", "--uts="+ns+"uts", "--ipc="+ns+"ipc",
		"--cgroup="+ns+"cgroup", "sh", "-c", "cd /root\n"+script)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8"}
	cmd.WaitDelay = time.Second // what a script leaves running may keep its output open
	b, err := cmd.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited && !errors.Is(err, exec.ErrWaitDelay) || ctx.Err() != nil {
		m.t.Fatalf("%s: %v\n%s", script, err, b)
	}
	return string(b), cmd.ProcessState.ExitCode()
}

// do is try of a script that must succeed.
func (m *machine) do(script string) string {
	m.t.Helper()
	out, code := m.try(script)
	if code != 0 {
		log, _ := m.try("journalctl -n 40 -o short-monotonic --no-pager")
		m.t.Fatalf("exit code %d of\n%s\nwhich printed\n%s\nThe journal ends with\n%s", code, script, out, log)
	}
	return out
}

// put copies a file of this host to the directory /root of the machine.
func (m *machine) put(file string) {
	m.t.Helper()
	b, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(filepath.Join(m.root, "root", filepath.Base(file)), b, 0o644)
	}
	if err != nil {
		m.t.Fatal(err)
	}
}
