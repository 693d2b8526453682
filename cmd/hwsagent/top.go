package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"hwsagent/agent/queues"
	"hwsagent/agent/status"
	"hwsagent/agent/top"
)

// The size of a screen that is not printed on a terminal.
const (
	plainColumns = 120
	plainRows    = 200
)

func (c *cli) top() *cobra.Command {
	var once bool
	interval := time.Second
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show the status live in the terminal",
		Long: "top shows the verdict, each problem with its remedy, the targets (those with problems first) and the slowest inputs.\n" +
			"If the agent is down, it shows the last state. Arrow keys, Page Up, Page Down, g and G scroll; q quits.",
		Example: "  hwsagent top\n" +
			"  hwsagent top --interval 5s\n" +
			"  hwsagent top --once         # for a log or a pipe",
		Args: arguments(0, 0),
		RunE: c.command(func(cmd *cobra.Command, _ []string) error {
			fetch := func(ctx context.Context) (status.Status, error) { return queues.FetchStatus(ctx, c.storage) }
			screen, isFile := c.stdout.(*os.File)
			if once || c.json || !isFile || !term.IsTerminal(int(screen.Fd())) { // #nosec G115 -- a descriptor
				return c.topOnce(cmd.Context(), fetch)
			}
			return live(cmd.Context(), screen, fetch, max(interval, 100*time.Millisecond))
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&once, "once", false, "print the status once, with the exit code of hwsagent status; the default if the output is not a terminal")
	f.DurationVar(&interval, "interval", interval, "the `duration` between two refreshes; at least 100ms")
	return cmd
}

// topOnce prints one screen.
func (c *cli) topOnce(ctx context.Context, fetch top.Fetch) error {
	s, err := fetch(ctx)
	if s.Schema == 0 {
		return err
	}
	if c.json {
		c.printJSON(s)
	} else {
		columns, rows := plainColumns, plainRows
		if f, ok := c.stdout.(*os.File); ok {
			if w, _, err := term.GetSize(int(f.Fd())); err == nil { // #nosec G115 -- a descriptor
				columns = w
			}
		}
		lines := top.Lines(s, nil, columns, rows, false)
		text := strings.TrimRight(strings.Join(lines[:len(lines)-1], "\n"), "\n") // without the line about keys
		if _, err := fmt.Fprintln(c.stdout, text); err != nil {
			return err
		}
	}
	if err != nil {
		return exited{exitCode(err)}
	}
	if code := s.ExitCode(); code != status.ExitOK {
		return exited{code}
	}
	return nil
}

// live shows the screen on a terminal until q is pressed.
func live(ctx context.Context, screen *os.File, fetch top.Fetch, interval time.Duration) error {
	in := int(os.Stdin.Fd()) // #nosec G115 -- a descriptor
	if before, err := term.MakeRaw(in); err == nil {
		defer func() { _ = term.Restore(in, before) }() // an error means that the terminal is gone
	}
	keys := make(chan byte)
	go func() { // runs until the process ends: a read from a terminal cannot be canceled
		defer close(keys)
		for r := bufio.NewReader(os.Stdin); ; {
			b, err := r.ReadByte()
			if err != nil {
				return
			}
			keys <- b
		}
	}()
	err := top.Run(ctx, top.Terminal{Out: screen, Keys: keys, Colour: os.Getenv("NO_COLOR") == "", Size: func() (columns, rows int) {
		columns, rows, err := term.GetSize(int(screen.Fd())) // #nosec G115 -- a descriptor
		if err != nil {
			return 80, 24
		}
		return columns, rows
	}}, fetch, interval)
	if errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
