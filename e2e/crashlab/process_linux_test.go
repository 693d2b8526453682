package crashlab

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// mountsEnv tells a process that its mounts are its own.
const mountsEnv = "HWSAGENT_CRASHLAB_MOUNTS"

func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// ownMounts starts this program again in a mount namespace of its own, so that whatever
// it mounts is gone when it ends, however it ends. Where that is not permitted it does
// nothing: the tests that mount are skipped then.
func ownMounts() {
	if os.Getuid() != 0 || os.Getenv(mountsEnv) != "" {
		return
	}
	runtime.LockOSThread() // execve keeps the namespaces of the thread that calls it
	defer runtime.UnlockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return
	}
	self, err := os.Executable()
	if err != nil {
		return
	}
	_ = syscall.Exec(self, os.Args, append(os.Environ(), mountsEnv+"=1")) // only returns on failure
}

func mountsAreOwn() bool { return os.Getenv(mountsEnv) != "" }
