// Command hwsagent reads hardware and host metrics and pushes them to Prometheus
// remote-write targets through a log on disk.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hwsagent/agent"
	"hwsagent/agent/config"
	"hwsagent/agent/control"
	"hwsagent/agent/demo"
	"hwsagent/agent/hardware"
	"hwsagent/agent/inspect"
	"hwsagent/agent/queues"
	"hwsagent/agent/status"
	"hwsagent/internal/watchdog"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		// A second signal ends the process at once.
		<-ctx.Done()
		stop()
	}()
	c := &cli{stdout: os.Stdout, stderr: os.Stderr, program: os.Args[0]}
	os.Exit(guarded(ctx, c, func() int { return c.execute(ctx, os.Args[1:]) }))
}

// How long a command may take to end after a stop signal; see [guarded].
const (
	agentEnds   = 1850 * time.Millisecond // hwsagent run: with lastWords in under two seconds
	commandEnds = 10 * time.Second
	lastWords   = 100 * time.Millisecond // to print the hanging parts, which may hang itself
)

// guarded runs a command and gives it up if it does not end in its time after ctx ends. It then prints what still runs
// and returns status.ExitLeft; the process must exit after that.
func guarded(ctx context.Context, c *cli, command func() int) int {
	code := make(chan int, 1)
	go func() { code <- command() }()
	select {
	case n := <-code:
		return n
	case <-ctx.Done():
	}
	late := time.NewTimer(cmp.Or(time.Duration(c.ends.Load()), commandEnds))
	defer late.Stop()
	select {
	case n := <-code:
		return n
	case <-late.C:
	}
	said := make(chan struct{})
	go func() {
		defer close(said)
		running := watchdog.Look()
		fmt.Fprintf(c.stderr, "hwsagent: did not stop in time; parts left behind: %s\n%s\n",
			cmp.Or(running.Names(), "see the stacks"), running.Stacks)
	}()
	enough := time.NewTimer(lastWords)
	defer enough.Stop()
	select {
	case <-said:
	case <-enough.C:
	}
	return status.ExitLeft
}

// execute carries out a command line and returns its exit code.
func (c *cli) execute(ctx context.Context, args []string) int {
	if len(args) > 1 && args[0] == "help" {
		args = append(slices.Clone(args[1:]), "--help") // so that a wrong name is an error in both forms
	}
	root := c.root()
	root.SetArgs(args)
	root.SetOut(c.stdout)
	root.SetErr(c.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = c.unknown
	}
	if err == nil {
		return status.ExitOK
	}
	code := exitCode(err)
	if !c.started {
		code = status.ExitUsage
		c.json = c.json || slices.Contains(args, "--json") // flags behind the wrong one were not read
		if missing := cmd.ValidateRequiredFlags(); missing != nil && missing.Error() == err.Error() {
			err = howToWrite(cmd)
		}
		if together := cmd.ValidateFlagGroups(); together != nil && together.Error() == err.Error() {
			err = errors.New("write only one of these flags: " + exclusive(cmd))
		}
	}
	c.complain(cmd, code, err)
	return code
}

// exited is an error that was already printed, with its exit code.
type exited struct{ code int }

func (e exited) Error() string { return fmt.Sprintf("exit code %d", e.code) }

func exitCode(err error) int {
	if e, ok := errors.AsType[exited](err); ok {
		return e.code
	}
	if _, ok := errors.AsType[*config.Errors](err); ok {
		return status.ExitConfig
	}
	if _, ok := errors.AsType[*agent.LeftBehind](err); ok {
		return status.ExitLeft
	}
	switch {
	case errors.Is(err, agent.ErrReload), errors.Is(err, config.ErrRead):
		return status.ExitConfig
	case errors.Is(err, hardware.ErrProbe):
		return status.ExitAttention
	case errors.Is(err, config.ErrNoSuchProbe), errors.Is(err, config.ErrNoSuchTarget), errors.Is(err, config.ErrNoSuchInput),
		errors.Is(err, config.ErrUsage), errors.Is(err, inspect.ErrSelector), errors.Is(err, demo.ErrUnknownScript):
		return status.ExitUsage
	case errors.Is(err, queues.ErrReplayRefused):
		return status.ExitTarget
	case errors.Is(err, inspect.ErrDamaged):
		return status.ExitDamaged
	case errors.Is(err, control.ErrNotRunning):
		return status.ExitNotRunning
	case errors.Is(err, control.ErrSilent):
		return status.ExitSilent
	}
	return status.ExitFailed
}

// cli is the state of one invocation.
type cli struct {
	stdout, stderr io.Writer
	program        string       // as it was called; "": hwsagent
	started        bool         // a command's own work has begun, so its errors are not wrong usage
	unknown        error        // help was asked for a command that does not exist
	ends           atomic.Int64 // how long the command may take to end after a signal, ns; 0: commandEnds

	config, storage, listen string
	logLevel, logFormat     string
	json                    bool
}

// complain prints why the program ends, as JSON on stdout if that was requested.
func (c *cli) complain(cmd *cobra.Command, code int, err error) {
	if _, ok := errors.AsType[exited](err); ok {
		return
	}
	if c.json {
		c.printJSON(map[string]any{"schema": 1, "error": err.Error(), "exit_code": code})
		return
	}
	fmt.Fprintf(c.stderr, "hwsagent: %v\n", err)
	_, refused := errors.AsType[*control.AccessError](err)
	switch {
	case errors.Is(err, config.ErrRead) && errors.Is(err, fs.ErrNotExist):
		fmt.Fprintln(c.stderr, "Try: name the file with --config.file, or write a first one: hwsagent init --url URL")
	case code == status.ExitNotRunning:
		fmt.Fprintln(c.stderr, "Try: name the agent's directory with --storage.path, or start it: hwsagent run")
	case code == status.ExitLeft:
		fmt.Fprintln(c.stderr, "Try: look at the file, disk or host that the log names; if it names none, report the stacks in the log as a bug")
	case code == status.ExitSilent:
		fmt.Fprintln(c.stderr, "Try: look at the agent's process (ps -o pid,stat,cmd -C hwsagent). State T: it is stopped; resume it with kill -CONT.\n"+
			"    State D: the disk does not answer. Otherwise restart it. A resumed agent may still carry out the request: check with hwsagent targets")
	case errors.Is(err, inspect.ErrNoLog):
		fmt.Fprintln(c.stderr, "Try: name the agent's directory with --storage.path")
	case errors.Is(err, queues.ErrNotListening):
		fmt.Fprintln(c.stderr, "Try: again in a moment; if that does not help, restart the agent")
	case errors.Is(err, queues.ErrInUse):
		fmt.Fprintln(c.stderr, "Try: stop the other agent, or give this one its own directory with --storage.path; hwsagent status shows the state of the other")
	case errors.Is(err, syscall.EROFS):
		fmt.Fprintln(c.stderr, "Try: name a writable directory with --storage.path, or remount the file system as writable")
	case refused:
		fmt.Fprintln(c.stderr, "Try: run this as the agent's user, or as root")
	case cmd != nil && cmd.Name() == "run" && errors.Is(err, fs.ErrPermission) && c.inStorage(err):
		fmt.Fprintln(c.stderr, "Try: let your user write there, or choose another directory with --storage.path; hwsagent check checks every file and the storage directory")
	case errors.Is(err, fs.ErrPermission):
		fmt.Fprintln(c.stderr, "Try: run this as the agent's user, or give your user access; hwsagent check checks every file and the storage directory")
	case errors.Is(err, syscall.EADDRINUSE):
		fmt.Fprintln(c.stderr, "Try: another address, with --web.listen-address or web.listen")
	case code == status.ExitUsage && cmd != nil:
		for _, s := range suggestions(cmd) {
			fmt.Fprintf(c.stderr, "Did you mean: %s\n", s)
		}
		fmt.Fprintf(c.stderr, "Try: %s --help\n", cmd.CommandPath())
	}
}

// inStorage reports whether an error is of a path in the storage directory, or on the way to it.
func (c *cli) inStorage(err error) bool {
	e, ok := errors.AsType[*fs.PathError](err)
	dir := filepath.Clean(c.storage)
	return ok && (strings.HasPrefix(e.Path, dir) || strings.HasPrefix(dir, e.Path))
}

// suggestions returns the commands with names similar to the typed one, and those of that name at another place.
func suggestions(cmd *cobra.Command) (all []string) {
	if !cmd.HasSubCommands() || cmd.Flags().NArg() == 0 {
		return nil
	}
	typed := cmd.Flags().Arg(0)
	cmd.SuggestionsMinimumDistance = 2
	for _, name := range cmd.SuggestionsFor(typed) {
		all = append(all, cmd.CommandPath()+" "+name)
	}
	var walk func(at *cobra.Command)
	walk = func(at *cobra.Command) {
		for _, sub := range at.Commands() {
			path := sub.CommandPath()
			if (sub.Name() == typed || slices.Contains(sub.SuggestFor, typed)) && !slices.Contains(all, path) {
				all = append(all, path)
			}
			walk(sub)
		}
	}
	walk(cmd.Root())
	return all
}

// arguments requires least to most arguments, and says how the command is written. A command that has others below it takes none: an
// argument is the name of one that does not exist.
func arguments(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case cmd.HasSubCommands() && len(args) > 0:
			return fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
		case len(args) > most && most == 0:
			return fmt.Errorf("%s takes no argument, but got %q", cmd.CommandPath(), args[0])
		case len(args) < least || len(args) > most:
			return howToWrite(cmd)
		}
		return nil
	}
}

// exclusive lists the flags on the command line that exclude each other.
func exclusive(cmd *cobra.Command) string {
	var all []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Annotations["cobra_annotation_mutually_exclusive"] != nil {
			all = append(all, "--"+f.Name)
		}
	})
	return strings.Join(all, ", ")
}

// howToWrite is an error that shows the command with its arguments and the flags that it requires.
func howToWrite(cmd *cobra.Command) error {
	return fmt.Errorf("write: %s", strings.TrimSuffix(cmd.UseLine(), " [flags]"))
}

// printJSON writes a value as JSON; an error is reported on stderr only.
func (c *cli) printJSON(v any) {
	e := json.NewEncoder(c.stdout)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		fmt.Fprintf(c.stderr, "hwsagent: write JSON: %v\n", err)
	}
}
