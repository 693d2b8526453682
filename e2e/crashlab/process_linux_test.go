package crashlab

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// mountsEnv tells a process that its mounts are its own.
const mountsEnv = "HWSAGENT_CRASHLAB_MOUNTS"

// dieWithParent ends a child with this process: start it by [starter.start].
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// starter starts children on one thread that lasts until end. The kernel sends the signal of
// dieWithParent when the thread ends that started the child (prctl(2), PR_SET_PDEATHSIG), and a
// goroutine of another test that ends while it is locked to its thread ends that thread: it may be any
// that had started an agent before.
type starter struct{ calls chan func() }

var children = starter{make(chan func())}

// run calls what start is given, until end. It must not return before.
func (s starter) run() {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	for f := range s.calls {
		f()
	}
}

func (s starter) end() { close(s.calls) }

// start calls start, as of [exec.Cmd], on the thread.
func (s starter) start(start func() error) error {
	err := make(chan error, 1)
	s.calls <- func() { err <- start() }
	return <-err
}

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
