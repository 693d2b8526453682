package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"hwsagent/agent/control"
	"hwsagent/agent/status"
)

// logName is the file, in the demo's directory, that every agent process appends its log to.
const logName = "agent.log"

// process runs the agent as a user does: a program with flags. Between start and the next kill or stop there is one
// process.
type process struct {
	binary, dir string

	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	err  error         // its error; valid once done is closed
}

// storage returns the agent's --storage.path.
func (p *process) storage() string { return filepath.Join(p.dir, "data") }

func (p *process) configFile() string { return filepath.Join(p.dir, "agent.yaml") }

// start starts the process; it does not wait until it is ready.
func (p *process) start() error {
	log, err := os.OpenFile(filepath.Join(p.dir, logName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("start the agent: %w", err)
	}
	defer log.Close()
	// No context: the demo decides how the process ends.
	cmd := exec.Command(p.binary, "run", "--config.file", p.configFile(), "--storage.path", p.storage()) //nolint:gosec,noctx // the binary is this program
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the agent: %w", err)
	}
	done := make(chan struct{})
	p.cmd, p.done = cmd, done
	go func() {
		p.err = cmd.Wait()
		close(done)
	}()
	return nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// ended reports whether the process has ended, and its error.
func (p *process) ended() (bool, error) {
	if p.cmd == nil {
		return true, nil
	}
	select {
	case <-p.done:
		return true, p.err
	default:
		return false, nil
	}
}

// kill ends the process with SIGKILL: it gets no chance to save anything.
func (p *process) kill() {
	if gone, _ := p.ended(); gone {
		return
	}
	_ = p.cmd.Process.Kill() // fails only if it is gone already
	<-p.done
}

// stop asks the process to end and returns how long it took. If that takes longer than patience, it kills the process
// and returns an error.
func (p *process) stop(patience time.Duration) (time.Duration, error) {
	start := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.kill() // a system without SIGTERM
		return time.Since(start), nil
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
		if p.err != nil {
			return time.Since(start), fmt.Errorf("the agent ended badly: %w", p.err)
		}
		return time.Since(start), nil
	case <-timer.C:
		p.kill()
		return time.Since(start), fmt.Errorf("the agent did not end within %s of SIGTERM", patience)
	}
}

// status returns the agent's status.
func (p *process) status(ctx context.Context) (status.Status, error) {
	var st status.Status
	code, body, err := control.Do(ctx, p.storage(), http.MethodGet, "/api/v1/status")
	if err != nil {
		return st, err
	}
	if code != http.StatusOK {
		return st, fmt.Errorf("ask the agent for its status: %d %s", code, body)
	}
	if err := json.Unmarshal(body, &st); err != nil {
		return st, fmt.Errorf("ask the agent for its status: %w", err)
	}
	return st, nil
}

// reload makes the agent read its configuration again.
func (p *process) reload(ctx context.Context) error {
	code, body, err := control.Do(ctx, p.storage(), http.MethodPost, "/-/reload")
	if err != nil {
		return err
	}
	if code/100 != 2 {
		return fmt.Errorf("reload the agent: %d %s", code, body)
	}
	return nil
}

// lastLines returns the last n lines of a file; "" if it cannot be read.
func lastLines(file string, n int) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
