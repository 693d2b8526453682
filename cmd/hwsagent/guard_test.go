package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/agent/status"
	"hwsagent/internal/watchdog"
)

// hangingWriter is a standard error without a reader.
type hangingWriter struct{ over chan struct{} }

func (w hangingWriter) Write(p []byte) (int, error) {
	<-w.over
	return len(p), nil
}

// TestGuardEndsACommand: a command that does not end after a signal is given up in its time and
// named, also where standard error hangs, too. One that ends in time has its own exit code.
func TestGuardEndsACommand(t *testing.T) {
	for name, c := range map[string]struct {
		ends   time.Duration // how long it may take; 0: as any command
		takes  time.Duration // after the signal
		silent bool          // standard error hangs
		code   int
		took   time.Duration
	}{
		"an agent that ends":   {agentEnds, time.Second, false, status.ExitOK, time.Second},
		"an agent that hangs":  {agentEnds, time.Hour, false, status.ExitLeft, agentEnds},
		"and so does its log":  {agentEnds, time.Hour, true, status.ExitLeft, agentEnds + lastWords},
		"a command that ends":  {0, 9 * time.Second, false, status.ExitOK, 9 * time.Second},
		"a command that hangs": {0, time.Hour, false, status.ExitLeft, commandEnds},
		"and its error output": {0, time.Hour, true, status.ExitLeft, commandEnds + lastWords},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var said bytes.Buffer
				cli := &cli{stderr: &said}
				over := make(chan struct{})
				if c.silent {
					cli.stderr = hangingWriter{over}
				}
				cli.ends.Store(int64(c.ends))
				ctx, signal := context.WithCancel(t.Context())
				var signalled time.Time
				time.AfterFunc(time.Minute, func() { signalled = time.Now(); signal() })
				code := guarded(ctx, cli, func() int {
					watchdog.Do(t.Context(), "the test's part", func(context.Context) {
						<-ctx.Done()
						time.Sleep(c.takes)
					})
					return status.ExitOK
				})
				if took := time.Since(signalled); code != c.code || took != c.took {
					t.Errorf("exit code %d after %s, want %d after %s", code, took, c.code, c.took)
				}
				if named := strings.Contains(said.String(), "left behind: the test's part (in cmd/hwsagent."); named != (c.code == status.ExitLeft && !c.silent) {
					t.Errorf("it said %q", said.String())
				}
				close(over)
				time.Sleep(2 * time.Hour) // until what was left behind has ended
			})
		})
	}
}

// TestGuardPassesAnExitCode: a command that ends without a signal.
func TestGuardPassesAnExitCode(t *testing.T) {
	if code := guarded(t.Context(), &cli{}, func() int { return status.ExitAttention }); code != status.ExitAttention {
		t.Errorf("exit code %d, want %d", code, status.ExitAttention)
	}
}
