package main

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"

	"hwsagent/agent"
)

// targets are the commands about what waits for a target.
func (c *cli) targets() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "targets",
		Short: "Look at targets, test, pause and rename them, and do something about what waits for them",
		Long: "Without a command it lists the targets. What changes a queue is done by the agent that is running or, without one,\n" +
			"in its storage directory; it is durable when the command says that it is done.",
		Example: "  hwsagent targets\n" +
			"  hwsagent targets test mimir\n" +
			"  hwsagent targets pause mimir",
		Args: cobra.NoArgs,
		RunE: c.command(c.listTargets),
	}
	cmd.AddCommand(c.listCommand(), c.testTarget(), c.pauseTarget(), c.resumeTarget(), c.skipTarget(), c.adoptTarget(), c.dropTarget(), c.rejected())
	return cmd
}

// named wants so many names.
func named(n int, usage string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != n {
			return errors.New("write: hwsagent targets " + usage)
		}
		return nil
	}
}

func (c *cli) listCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the targets, those too that are not configured any more and still have a queue",
		Example: "  hwsagent targets list\n" +
			"  hwsagent targets list --json",
		Args: cobra.NoArgs, RunE: c.command(c.listTargets),
	}
}

func (c *cli) listTargets(cmd *cobra.Command, _ []string) error {
	s, err := agent.FetchStatus(cmd.Context(), c.storage)
	if s.Schema == 0 {
		return err
	}
	if c.json {
		c.printJSON(map[string]any{"schema": 1, "running": s.Running, "targets": s.Targets})
	} else {
		if !s.Running {
			fmt.Fprintln(c.stderr, "the agent is not running; read from its directory")
		}
		table := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprint(table, "TARGET\tSTATE\tWAITING\tOLDEST\tDELIVERED\tFILTERED\tDROPPED\tDEAD LETTERS\tURL\n")
		for _, t := range s.Targets {
			dropped := uint64(0)
			for _, n := range t.Ledger.Dropped {
				dropped += n
			}
			fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%d\t%d\t%d\t%d\t%s\n", t.Name, t.State, t.PendingSamples, stamp(t.OldestPending),
				t.Ledger.Delivered, t.Ledger.Filtered, dropped, t.DeadLetters, dash(t.URL))
		}
		if err := table.Flush(); err != nil {
			return err
		}
		for _, t := range s.Targets {
			if t.Why != "" {
				fmt.Fprintf(c.stdout, "%s: %s\n", t.Name, t.Why)
			}
		}
	}
	if err != nil && !errors.Is(err, agent.ErrNotRunning) {
		return err
	}
	return nil
}

func dash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().Format(time.RFC3339)
}

func (c *cli) testTarget() *cobra.Command {
	return &cobra.Command{
		Use:     "test NAME",
		Short:   "Go the way to a target step by step, up to a write without samples; a target that is held is tried again if that works",
		Example: "  hwsagent targets test mimir",
		Args:    named(1, "test NAME"), ValidArgsFunction: c.completeTarget,
		RunE: c.command(func(cmd *cobra.Command, args []string) error {
			var t agent.TargetTest
			var err error
			c.slowly("waiting for an answer …", func() { t, err = agent.TestTarget(cmd.Context(), c.storage, c.config, args[0]) })
			if err != nil {
				return err
			}
			if c.json {
				c.printJSON(t)
			} else if err := t.WriteText(c.stdout); err != nil {
				return err
			}
			if t.Result == agent.Fail {
				return exited{exitTarget}
			}
			return nil
		}),
	}
}

func (c *cli) manager() agent.TargetManager {
	return agent.TargetManager{Storage: c.storage, Config: c.config}
}

// ask has something done, and says so if that takes its time: an agent that hangs never
// answers.
func (c *cli) ask(do func(m agent.TargetManager) (agent.TargetChange, error)) (ch agent.TargetChange, err error) {
	c.slowly("waiting for the agent …", func() { ch, err = do(c.manager()) })
	return ch, err
}

// slowly does some work, and says what it is if that takes its time.
func (c *cli) slowly(what string, work func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Second):
		fmt.Fprintln(c.stderr, what)
		<-done
	}
}

// done prints what was done: as JSON, or the line for people.
func (c *cli) done(ch agent.TargetChange, line string) {
	if c.json {
		c.printJSON(ch)
		return
	}
	if !ch.Running && !ch.DryRun {
		line += " (the agent is not running: in its directory)"
	}
	fmt.Fprintln(c.stdout, line)
}

func (c *cli) pauseTarget() *cobra.Command {
	return &cobra.Command{
		Use:     "pause NAME",
		Short:   "Send nothing to a target until it is resumed, also after a restart; what is collected waits in the log",
		Example: "  hwsagent targets pause mimir      # before its receiver is worked on",
		Args:    named(1, "pause NAME"), ValidArgsFunction: c.completeTarget,
		RunE: c.command(func(cmd *cobra.Command, args []string) error {
			ch, err := c.ask(func(m agent.TargetManager) (agent.TargetChange, error) { return m.Pause(cmd.Context(), args[0]) })
			if err != nil {
				return err
			}
			c.done(ch, fmt.Sprintf("%s is paused since %s; %s wait", ch.Target, stamp(ch.PausedSince), samples(ch.Ledger.Pending)))
			return nil
		}),
	}
}

func (c *cli) resumeTarget() *cobra.Command {
	return &cobra.Command{
		Use:     "resume NAME",
		Short:   "Send to a target again that was paused",
		Example: "  hwsagent targets resume mimir",
		Args:    named(1, "resume NAME"), ValidArgsFunction: c.completeTarget,
		RunE: c.command(func(cmd *cobra.Command, args []string) error {
			ch, err := c.ask(func(m agent.TargetManager) (agent.TargetChange, error) { return m.Resume(cmd.Context(), args[0]) })
			if err != nil {
				return err
			}
			c.done(ch, fmt.Sprintf("%s is not paused; %s wait", ch.Target, samples(ch.Ledger.Pending)))
			return nil
		}),
	}
}

func (c *cli) skipTarget() *cobra.Command {
	var before string
	var dryRun, yes bool
	cmd := &cobra.Command{
		Use:   "skip NAME --before TIME",
		Short: "Give up what waits for a target and is older than a time; it counts as skipped",
		Long: "skip gives up the beginning of a target's queue, up to the first commit with a sample that is not older than the time.\n" +
			"Without --yes it only says what that would be.\n\n" + timeHelp,
		Example: "  hwsagent targets skip mimir --before 3d         # what would be given up\n" +
			"  hwsagent targets skip mimir --before 3d --yes",
		Args: named(1, "skip NAME --before TIME"), ValidArgsFunction: c.completeTarget,
		RunE: c.command(func(cmd *cobra.Command, args []string) error {
			at, err := parseTime(before, time.Now())
			if err != nil {
				c.started = false
				return fmt.Errorf("--before: %w", err)
			}
			var ch agent.TargetChange
			m := c.manager()
			m.Progress = c.progress(time.Now)
			ch, err = m.Skip(cmd.Context(), args[0], at, dryRun || !yes)
			if err != nil {
				return err
			}
			what := samples(ch.Samples) + " for " + ch.Target
			if ch.Samples > 0 && !ch.Oldest.IsZero() {
				what += fmt.Sprintf(", from %s to %s", stamp(ch.Oldest), stamp(ch.Newest))
			}
			next := "; nothing else waits"
			if !ch.GoesOn.IsZero() {
				next = "; it goes on with " + stamp(ch.GoesOn)
			}
			switch {
			case ch.Samples == 0:
				c.done(ch, fmt.Sprintf("nothing waits for %s before %s%s", ch.Target, stamp(at), next))
			case !ch.DryRun:
				c.done(ch, "skipped "+what+next)
			case dryRun:
				c.done(ch, "would skip "+what+next)
			default:
				c.done(ch, "would skip "+what+next+"\nNothing was changed. They are lost to this target when skipped: write --yes to do it")
				return exited{exitUsage}
			}
			return nil
		}),
	}
	f := cmd.Flags()
	f.StringVar(&before, "before", "", "give up what is older than this `time`")
	f.BoolVar(&dryRun, "dry-run", false, "only say what would be done")
	f.BoolVar(&yes, "yes", false, "do it")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "yes")
	_ = cmd.MarkFlagRequired("before") // it is there
	return cmd
}

func (c *cli) adoptTarget() *cobra.Command {
	return &cobra.Command{
		Use:   "adopt OLD NEW",
		Short: "Rename a target and keep its queue: give the entry its new name in the configuration first",
		Long: "adopt gives the queue of the target OLD to NEW: what waits, the account, a pause, the dead letters. Give the entry its new\n" +
			"name in the configuration file first, and do not reload: a running agent reloads it in the same step. It is refused when\n" +
			"NEW has delivered something of its own.",
		Example: "  hwsagent targets adopt mimir mimir-eu",
		Args:    named(2, "adopt OLD NEW"), ValidArgsFunction: c.completeAdopt,
		RunE: c.command(func(cmd *cobra.Command, args []string) error {
			ch, err := c.ask(func(m agent.TargetManager) (agent.TargetChange, error) {
				return m.Adopt(cmd.Context(), args[0], args[1])
			})
			if err != nil {
				return err
			}
			c.done(ch, fmt.Sprintf("%s has the queue of %s; %s wait", ch.Target, ch.From, samples(ch.Samples)))
			return nil
		}),
	}
}

func (c *cli) dropTarget() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:     "drop NAME --yes",
		Short:   "Remove the queue and the dead letters of a target that is no longer configured",
		Example: "  hwsagent targets drop old-mimir --yes",
		Args:    named(1, "drop NAME --yes"), ValidArgsFunction: c.completeQueue,
		RunE: c.command(func(cmd *cobra.Command, args []string) error {
			if !yes {
				c.started = false
				return fmt.Errorf("what waits for %s is lost then, its account and its dead letters too: write --yes to do it", args[0])
			}
			ch, err := c.ask(func(m agent.TargetManager) (agent.TargetChange, error) { return m.Drop(cmd.Context(), args[0]) })
			if err != nil {
				return err
			}
			c.done(ch, fmt.Sprintf("dropped the queue of %s, in which %s waited, and %d dead letters", ch.Target, samples(ch.Samples), ch.Letters))
			return nil
		}),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do it")
	return cmd
}

func (c *cli) rejected() *cobra.Command {
	var limit int
	var empty bool
	show := func(cmd *cobra.Command, name string, empty bool) error {
		if empty {
			ch, err := c.ask(func(m agent.TargetManager) (agent.TargetChange, error) { return m.Clear(cmd.Context(), name) })
			if err != nil {
				return err
			}
			c.done(ch, fmt.Sprintf("removed %d dead letters of %s", ch.Letters, name))
			return nil
		}
		r, err := agent.Rejected(c.storage, name, limit)
		if err != nil {
			return err
		}
		if c.json {
			c.printJSON(r)
			return nil
		}
		return r.WriteText(c.stdout)
	}
	cmd := &cobra.Command{
		Use:   "rejected NAME [clear]",
		Short: "Show what the receiver refused, and why; with clear, forget it",
		Example: "  hwsagent targets rejected mimir --limit 5\n" +
			"  hwsagent targets rejected mimir clear",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 || len(args) == 2 && args[1] == "clear" {
				return nil
			}
			return errors.New("write: hwsagent targets rejected NAME, or hwsagent targets rejected NAME clear")
		},
		ValidArgsFunction: c.completeTarget,
		RunE: c.command(func(cmd *cobra.Command, args []string) error {
			return show(cmd, args[0], empty || len(args) == 2)
		}),
	}
	f := cmd.Flags()
	f.IntVar(&limit, "limit", 50, "show the newest `n`; 0 for all")
	f.BoolVar(&empty, "clear", false, "forget them, as the word clear does")
	return cmd
}

func samples(n uint64) string {
	if n == 1 {
		return "1 sample"
	}
	return fmt.Sprintf("%d samples", n)
}

const timeHelp = `A time is now, a duration that says how long ago (90m, 26h, 3d), or a date: 2026-11-20T06:00:00Z, or
"2026-11-20 06:00" by this host's clock and time zone.`

// parseTime reads what timeHelp says.
func parseTime(text string, now time.Time) (time.Time, error) {
	text = strings.TrimSpace(text)
	if text == "now" {
		return now, nil
	}
	if d, err := model.ParseDuration(strings.TrimPrefix(text, "-")); err == nil {
		return now.Add(-time.Duration(d)), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	for _, layout := range []string{"2006-01-02T15:04Z07:00", "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time: write now, how long ago (26h, 3d), or a date such as 2026-11-20T06:00:00Z", text)
}
