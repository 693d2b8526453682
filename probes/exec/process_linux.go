package exec

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownGroup puts a command into a process group of its own. The kernel kills it when the agent is
// killed, so that no exporter is left behind. The signal is sent when the thread ends that started the
// command (prctl(2), PR_SET_PDEATHSIG), so no goroutine of the agent may end while it is locked to its
// thread.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// watch tells when the process of a started command has ended. The process is not reaped
// before finish: until then its number, and that of its group, is nobody else's. finish is Wait, to
// be called once, after exited.
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

// signalGroup sends a signal to all processes of the group; that there are none is no error.
func signalGroup(p *os.Process, s syscall.Signal) { _ = syscall.Kill(-p.Pid, s) }
