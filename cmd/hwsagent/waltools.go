package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"hwsagent/agent/inspect"
	"hwsagent/agent/status"
)

func (c *cli) inspect() *cobra.Command {
	return &cobra.Command{
		Use:   "inspect",
		Short: "Show the log's segments, damage and positions",
		Long: "inspect prints each segment's content and damage, and each target's position. It changes nothing, and works beside a running\n" +
			"agent.",
		Example: "  hwsagent wal inspect\n" +
			"  hwsagent wal inspect --storage.path /mnt/var/lib/hwsagent --json   # a disk from another machine",
		Args: arguments(0, 0),
		RunE: c.command(func(*cobra.Command, []string) error {
			in, err := inspect.Log(c.storage, c.progress(time.Now))
			if in.Schema == 0 {
				return err
			}
			if c.json {
				c.printJSON(in)
			} else if err := in.WriteText(c.stdout); err != nil {
				return err
			}
			if err != nil {
				fmt.Fprintf(c.stderr, "hwsagent: %v\n", err)
				return exited{exitCode(err)}
			}
			return nil
		}),
	}
}

func (c *cli) dump() *cobra.Command {
	o := inspect.DumpOptions{}
	var from, to string
	cmd := &cobra.Command{
		Use:   "dump",
		Short: "Print the log's records",
		Long: "dump changes nothing, and works beside a running agent. It reads the log file by file, with the reader and decoder of Prometheus' WAL, not with\n" +
			"hwsagent's. Each line begins with the segment and the offset at which the record ends. --series, --from and --to select\n" +
			"records.\n\n" + timeHelp,
		Example: "  hwsagent wal dump --series '{job=\"host\"}' --from 10m\n" +
			"  hwsagent wal dump --series 'node_load1' --from 2026-11-20T06:00:00Z --to 2026-11-20T06:05:00Z --json",
		Args: arguments(0, 0),
		RunE: c.command(func(cmd *cobra.Command, _ []string) error {
			now := time.Now()
			for _, t := range []struct {
				flag, text string
				at         *time.Time
			}{{"from", from, &o.From}, {"to", to, &o.To}} {
				if t.text == "" {
					continue
				}
				var err error
				if *t.at, err = parseTime(t.text, now); err != nil {
					c.started = false
					return fmt.Errorf("--%s: %w", t.flag, err)
				}
			}
			if from != "" && to != "" && !o.From.Before(o.To) {
				c.started = false
				return fmt.Errorf("--from %s is not before --to %s: %s and %s", quote(from), quote(to), stamp(o.From), stamp(o.To))
			}
			o.Storage, o.JSON = c.storage, c.json
			out := &notedWriter{to: c.stdout}
			err := inspect.Dump(cmd.Context(), o, out)
			if err == nil || !out.written {
				return err
			}
			fmt.Fprintf(c.stderr, "hwsagent: %v\n", err) // the JSON value has the error already, and must stay the only one
			return exited{exitCode(err)}
		}),
	}
	f := cmd.Flags()
	f.StringVar(&o.Series, "series", "", "print only the records of series that match this `selector`")
	f.StringVar(&from, "from", "", "only samples and exemplars of this `time` and later")
	f.StringVar(&to, "to", "", "only samples and exemplars before this `time`")
	return cmd
}

func (c *cli) verify() *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Compare two readings of the log",
		Long: "verify changes nothing, and works beside a running agent.\nverify reads the log twice, with hwsagent's reader and with the reader of Prometheus' WAL, and compares every commit,\n" +
			"sample, histogram, exemplar and label set. It prints how many are equal, or the first difference.\n\n" +
			"Exit code 0: the readings agree; 1: they differ, or the log cannot be read. After damage they usually differ, because\n" +
			"only hwsagent continues behind it.",
		Example: "  hwsagent wal verify\n  hwsagent wal verify --storage.path /var/lib/hwsagent --json",
		Args:    arguments(0, 0),
		RunE: c.command(func(cmd *cobra.Command, _ []string) error {
			v, err := inspect.Verify(cmd.Context(), c.storage, c.progress(time.Now))
			if err != nil && !errors.Is(err, inspect.ErrDiffer) {
				return err
			}
			if c.json {
				c.printJSON(v)
			} else if err := v.WriteText(c.stdout); err != nil {
				return err
			}
			if err != nil {
				return exited{status.ExitFailed}
			}
			return nil
		}),
	}
}

// notedWriter records whether it was written to.
type notedWriter struct {
	to      io.Writer
	written bool
}

func (w *notedWriter) Write(p []byte) (int, error) {
	w.written = true
	return w.to.Write(p)
}
