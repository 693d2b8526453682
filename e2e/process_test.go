package e2e

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// process is a program that a test started. Its output goes to a file whose end is
// printed when the test fails.
type process struct {
	t    *testing.T
	name string
	args []string
	env  []string
	log  string // file

	cmd  *exec.Cmd
	done chan struct{}
	err  error // how it ended; valid once done is closed
}

// startProcess starts a program and ends it with the test.
func startProcess(t *testing.T, name string, args, env []string) *process {
	t.Helper()
	p := &process{t: t, name: name, args: args, env: env, log: filepath.Join(t.TempDir(), filepath.Base(name)+".log")}
	p.start()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s (pid %d) said:\n%s", filepath.Base(name), p.cmd.Process.Pid, p.tail(60))
		}
	})
	return p
}

func (p *process) start() {
	p.t.Helper()
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(p.name, p.args...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		p.t.Fatalf("start %s: %v", p.name, err)
	}
	done := make(chan struct{})
	p.cmd, p.done = cmd, done
	go func() {
		p.err = cmd.Wait()
		close(done)
	}()
}

// ended reports how the process ended, "" while it runs.
func (p *process) ended() string {
	select {
	case <-p.done:
		return filepath.Base(p.name) + " ended by itself: " + p.cmd.ProcessState.String()
	default:
		return ""
	}
}

// kill is SIGKILL. It returns when the process is gone.
func (p *process) kill() {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("kill %s: %v", p.name, err)
	}
	<-p.done
}

// terminate is SIGTERM. It returns how long the process took to end and its exit code.
func (p *process) terminate(patience time.Duration) (time.Duration, int) {
	p.t.Helper()
	return p.end(syscall.SIGTERM, patience)
}

// end sends a signal that ends the process, and waits for that.
func (p *process) end(signal syscall.Signal, patience time.Duration) (time.Duration, int) {
	p.t.Helper()
	begin := time.Now()
	if err := p.cmd.Process.Signal(signal); err != nil {
		p.t.Fatalf("end %s: %v (%s)", p.name, err, p.ended())
	}
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("%s did not end within %s of %s", p.name, patience, signal)
	}
	return time.Since(begin), p.cmd.ProcessState.ExitCode()
}

// logText is everything that the process wrote.
func (p *process) logText() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func (p *process) tail(n int) string {
	lines := strings.Split(strings.TrimRight(p.logText(), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// writeFile writes a file of the test's own, 0600.
func writeFile(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// runToEnd runs a program to its end and returns what it printed and its exit code.
func runToEnd(t *testing.T, limit time.Duration, program string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var out, errs strings.Builder
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s %v: %v", program, args, err)
	}
	if ctx.Err() != nil {
		t.Fatalf("%s %v did not end within %s\n%s", program, args, limit, errs.String())
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}
