package scrape

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// inNamespaces runs the test that calls it a second time, in a process with a loopback
// interface and an /etc/resolv.conf of its own: discovery asks the servers that the file
// names on port 53, and neither can be configured. It reports whether this is that process.
func inNamespaces(t *testing.T, resolv string) bool {
	t.Helper()
	const inside = "HWSAGENT_TEST_NAMESPACES"
	if os.Getenv(inside) == t.Name() {
		isolate(t, resolv)
		return true
	}
	if _, err := os.Stat("/etc/resolv.conf"); err != nil {
		cannot(t, "needs an /etc/resolv.conf to put another in its place: "+err.Error())
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.count=1")
	c.Env = append(os.Environ(), inside+"="+t.Name())
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	if uid := os.Getuid(); uid != 0 {
		c.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out, err := c.CombinedOutput()
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOSPC) {
		cannot(t, "needs a network and a mount namespace: "+err.Error())
	}
	t.Logf("in namespaces of its own:\n%s", out)
	if err != nil {
		t.Error(err)
	}
	return false
}

func cannot(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// isolate makes the namespaces usable.
func isolate(t *testing.T, resolv string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	must(err)
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	must(err)
	must(unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, lo))
	lo.SetUint16(lo.Uint16() | unix.IFF_UP)
	must(unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo))

	file := filepath.Join(t.TempDir(), "resolv.conf")
	must(os.WriteFile(file, []byte(resolv), 0o600))
	must(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")) // what follows stays in here
	must(unix.Mount(file, "/etc/resolv.conf", "", unix.MS_BIND, ""))
}
