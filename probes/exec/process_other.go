//go:build !linux

package exec

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup returns nil: this probe does not know process groups of other systems.
func ownGroup() *syscall.SysProcAttr { return nil }

// watch reports when the process of a started command has ended. finish returns how, after exited.
func watch(cmd *exec.Cmd) (exited <-chan struct{}, finish func() error) {
	ended := make(chan struct{})
	var err error
	go func() {
		defer close(ended)
		err = cmd.Wait()
	}()
	return ended, func() error { return err }
}

// signalGroup kills the process, but not the processes that it started.
func signalGroup(p *os.Process, _ syscall.Signal) { _ = p.Kill() }
