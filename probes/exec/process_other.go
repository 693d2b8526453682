//go:build !linux

package exec

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup has nothing to say on systems whose process groups this probe does not know.
func ownGroup() *syscall.SysProcAttr { return nil }

// watch tells when the process of a started command has ended. finish says how, after
// exited.
func watch(cmd *exec.Cmd) (exited <-chan struct{}, finish func() error) {
	ended := make(chan struct{})
	var err error
	go func() {
		defer close(ended)
		err = cmd.Wait()
	}()
	return ended, func() error { return err }
}

// signalGroup kills the process; what it has started is left to itself.
func signalGroup(p *os.Process, _ syscall.Signal) { _ = p.Kill() }
