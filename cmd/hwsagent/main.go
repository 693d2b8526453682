// Command hwsagent collects hardware and host metrics, keeps every sample in a log on
// disk, and pushes from that log to Prometheus remote-write endpoints.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// The exit codes. They are documented in the help of the root command and do not change.
const (
	exitOK     = 0
	exitFailed = 1 // something failed at run time
	exitUsage  = 2 // the command line is wrong
	exitConfig = 3 // the configuration is wrong
	exitTarget = 4 // check: a target failed
	exitProbe  = 5 // check, probe: a probe failed
	exitDamage = 6 // wal inspect: the log is damaged
	exitDown   = 7 // status, reload: no agent is running
)

// exitError is an error that decides the exit code. With a nil err, everything has been
// said already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// run runs one command line and returns its exit code. Data goes to stdout, everything
// for people to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot(stdout, stderr)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	exit, ok := errors.AsType[*exitError](err)
	if !ok {
		exit = &exitError{code: exitUsage, err: err} // cobra's own errors are about the command line
	}
	if exit.err != nil {
		fmt.Fprintf(stderr, "hwsagent: %s\n", strings.TrimRight(exit.err.Error(), "\n"))
		if exit.code == exitUsage {
			fmt.Fprintln(stderr, "Try: hwsagent --help")
		}
	}
	return exit.code
}
