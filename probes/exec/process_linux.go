package exec

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownGroup puts a command into its own process group. The kernel kills the command when the agent dies, so that no
// exporter is left behind. The signal is sent when the thread that started the command ends (prctl(2),
// PR_SET_PDEATHSIG), so no goroutine of the agent may end while it is locked to its thread.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// watch reports when the process of a started command has ended. The process is not reaped before finish, so that its
// number and that of its group cannot be reused until then. finish is Wait and must be called once, after exited.
func watch(cmd *exec.Cmd) (exited <-chan struct{}, finish func() error) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for errors.Is(unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
			continue
		}
	}()
	return ended, cmd.Wait
}

// signalGroup sends a signal to all processes of the group, if there are any.
func signalGroup(p *os.Process, s syscall.Signal) { _ = syscall.Kill(-p.Pid, s) }
