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
	"hwsagent/agent/check"
	"hwsagent/agent/control"
	"hwsagent/agent/queues"
	"hwsagent/agent/status"
)

// targets returns the commands about targets and their queues.
func (c *cli) targets() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "targets",
		Short: "List, test, pause, rename and drop targets",
		Long: "targets without a further command lists the targets. The running agent makes each change; without a running agent the\n" +
			"command makes it in the storage directory. The change is durable when the command reports success.",
		Example: "  hwsagent targets\n" +
			"  hwsagent targets test mimir\n" +
			"  hwsagent targets pause mimir",
		Args: arguments(0, 0),
		RunE: c.command(c.listTargets),
	}
	cmd.AddCommand(c.listCommand(), c.testTarget(), c.pauseTarget(), c.resumeTarget(), c.skipTarget(), c.adoptTarget(), c.dropTarget(), c.rejected())
	return cmd
}

// named requires n arguments.
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
		Use: "list", Short: "List the targets and their waiting samples",
		Long: "list includes targets that are no longer configured and still have a queue.",
		Example: "  hwsagent targets list\n" +
			"  hwsagent targets list --json",
		Args: arguments(0, 0), RunE: c.command(c.listTargets),
	}
}

func (c *cli) listTargets(cmd *cobra.Command, _ []string) error {
	s, err := queues.FetchStatus(cmd.Context(), c.storage)
	if s.Schema == 0 {
		return err
	}
	if c.json {
		c.printJSON(map[string]any{"schema": 1, "running": s.Running, "targets": s.Targets})
	} else {
		if !s.Running {
			fmt.Fprintln(c.stderr, "the agent is not running; this list is from its storage directory")
		}
		table := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprint(table, "TARGET\tSTATE\tWAITING\tOLDEST\tDELIVERED\tFILTERED\tREFUSED\tUNCONFIRMED\tLOST\tDEAD LETTERS\tURL\n")
		for _, t := range s.Targets {
			none := t.Ledger.Undelivered()
			fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", t.Name, t.State, t.PendingSamples, stamp(t.OldestPending),
				t.Ledger.Delivered, t.Ledger.Filtered, none.Refused, t.Ledger.Dropped[status.OutcomeUnconfirmed], none.Lost, t.DeadLetters, dash(t.URL))
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
	if err != nil && !errors.Is(err, control.ErrNotRunning) {
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
		Use:   "test NAME",
		Short: "Test a target step by step",
		Long: "test checks credential files, DNS, TCP, TLS, a write without samples, and the clock. The running agent makes the test; if all\n" +
			"steps succeed, it retries a held target at once.",
		Example: "  hwsagent targets test mimir",
		Args:    named(1, "test NAME"), ValidArgsFunction: c.completeTarget,
		RunE: c.command(func(cmd *cobra.Command, args []string) error {
			var t check.TargetTest
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
			if t.Result == check.Fail {
				return exited{status.ExitTarget}
			}
			return nil
		}),
	}
}

func (c *cli) manager() queues.Manager {
	return queues.Manager{Storage: c.storage, Config: c.config}
}

// ask runs an action, and says so if it takes long: an agent that hangs never answers.
func (c *cli) ask(do func(m queues.Manager) (queues.Change, error)) (ch queues.Change, err error) {
	c.slowly("waiting for the agent …", func() { ch, err = do(c.manager()) })
	return ch, err
}

// slowly does some work, and names it on stderr if it takes long.
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

// done prints the outcome: as JSON, or the line for people.
func (c *cli) done(ch queues.Change, line string) {
	if c.json {
		c.printJSON(ch)
		return
	}
	if !ch.Running && !ch.DryRun {
		line += " (the agent is not running: changed in its storage directory)"
	}
	fmt.Fprintln(c.stdout, line)
}

func (c *cli) pauseTarget() *cobra.Command {
	return &cobra.Command{
		Use:     "pause NAME",
		Short:   "Send nothing to a target until it is resumed",
		Long:    "pause lasts, even after a restart, until targets resume. Collected samples wait in the log.",
		Example: "  hwsagent targets pause mimir      # before maintenance of its receiver",
		Args:    named(1, "pause NAME"), ValidArgsFunction: c.completeTarget,
		RunE: c.command(func(cmd *cobra.Command, args []string) error {
			ch, err := c.ask(func(m queues.Manager) (queues.Change, error) { return m.Pause(cmd.Context(), args[0]) })
			if err != nil {
				return err
			}
			c.done(ch, fmt.Sprintf("%s has been paused since %s; %s waiting", ch.Target, stamp(ch.PausedSince), samples(ch.Ledger.Pending)))
			return nil
		}),
	}
}

func (c *cli) resumeTarget() *cobra.Command {
	return &cobra.Command{
		Use:     "resume NAME",
		Short:   "Resume a paused target",
		Example: "  hwsagent targets resume mimir",
		Args:    named(1, "resume NAME"), ValidArgsFunction: c.completeTarget,
		RunE: c.command(func(cmd *cobra.Command, args []string) error {
			ch, err := c.ask(func(m queues.Manager) (queues.Change, error) { return m.Resume(cmd.Context(), args[0]) })
			if err != nil {
				return err
			}
			c.done(ch, fmt.Sprintf("%s is resumed; %s waiting", ch.Target, samples(ch.Ledger.Pending)))
			return nil
		}),
	}
}

func (c *cli) skipTarget() *cobra.Command {
	var before string
	var dryRun, yes bool
	cmd := &cobra.Command{
		Use:   "skip NAME --before TIME",
		Short: "Discard a target's old waiting samples",
		Long: "The discarded samples count as skipped.\nskip discards the beginning of a target's queue, up to the first commit (the samples of one append) with a sample that is\n" +
			"not older than the time. Without --yes it only prints what it would discard.\n\n" + timeHelp,
		Example: "  hwsagent targets skip mimir --before 3d         # only print what would be discarded\n" +
			"  hwsagent targets skip mimir --before 3d --yes",
		Args: named(1, "skip NAME --before TIME"), ValidArgsFunction: c.completeTarget,
		RunE: c.command(func(cmd *cobra.Command, args []string) error {
			at, err := parseTime(before, time.Now())
			if err != nil {
				c.started = false
				return fmt.Errorf("--before: %w", err)
			}
			var ch queues.Change
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
			next := "; no other sample waits"
			if !ch.GoesOn.IsZero() {
				next = "; the queue continues with " + stamp(ch.GoesOn)
			}
			switch {
			case ch.Samples == 0 && ch.GoesOn.IsZero():
				c.done(ch, "no sample waits for "+ch.Target)
			case ch.Samples == 0:
				c.done(ch, fmt.Sprintf("no sample older than %s waits for %s%s", stamp(at), ch.Target, next))
			case !ch.DryRun:
				c.done(ch, "skipped "+what+next)
			case dryRun:
				c.done(ch, "would skip "+what+next)
			default:
				c.done(ch, "would skip "+what+next+"\nNothing was changed. This target never gets skipped samples: pass --yes to skip them")
				return exited{status.ExitUsage}
			}
			return nil
		}),
	}
	f := cmd.Flags()
	f.StringVar(&before, "before", "", "discard samples older than this `time`")
	f.BoolVar(&dryRun, "dry-run", false, "only print what would be discarded")
	f.BoolVar(&yes, "yes", false, "discard the samples")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "yes")
	_ = cmd.MarkFlagRequired("before") // the flag exists
	return cmd
}

func (c *cli) adoptTarget() *cobra.Command {
	return &cobra.Command{
		Use: "adopt OLD NEW", SuggestFor: []string{"rename"},
		Short: "Rename a target and keep its queue",
		Long: "adopt gives the queue of the target OLD to NEW: waiting samples, account, pause and dead letters. First give the entry its\n" +
			"new name in the configuration file, and do not reload: adopt makes a running agent reload the file in the same step.\n" +
			"adopt fails if NEW has already delivered samples of its own.",
		Example: "  hwsagent targets adopt mimir mimir-eu",
		Args:    named(2, "adopt OLD NEW"), ValidArgsFunction: c.completeAdopt,
		RunE: c.command(func(cmd *cobra.Command, args []string) error {
			ch, err := c.ask(func(m queues.Manager) (queues.Change, error) {
				return m.Adopt(cmd.Context(), args[0], args[1])
			})
			if err != nil {
				return err
			}
			c.done(ch, fmt.Sprintf("%s now has the queue of %s; %s waiting", ch.Target, ch.From, samples(ch.Samples)))
			return nil
		}),
	}
}

func (c *cli) dropTarget() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:     "drop NAME --yes",
		Short:   "Remove the queue of a target that is not configured",
		Long:    "drop removes its waiting samples, its account and its dead letters.",
		Example: "  hwsagent targets drop old-mimir --yes",
		Args:    named(1, "drop NAME --yes"), ValidArgsFunction: c.completeQueue,
		RunE: c.command(func(cmd *cobra.Command, args []string) error {
			if !yes {
				c.started = false
				return fmt.Errorf("this deletes the waiting samples, the account and the dead letters of %s: pass --yes to delete them", args[0])
			}
			ch, err := c.ask(func(m queues.Manager) (queues.Change, error) { return m.Drop(cmd.Context(), args[0]) })
			if err != nil {
				return err
			}
			letters := fmt.Sprintf("%d dead letters", ch.Letters)
			if ch.UnreadLetters != "" {
				letters += ", and others that could not be read: " + ch.UnreadLetters
			}
			c.done(ch, fmt.Sprintf("dropped the queue of %s with %s, and %s", ch.Target, samples(ch.Samples), letters))
			return nil
		}),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "delete them")
	return cmd
}

func (c *cli) rejected() *cobra.Command {
	var limit int
	var empty bool
	show := func(cmd *cobra.Command, name string, empty bool) error {
		if empty {
			ch, err := c.ask(func(m queues.Manager) (queues.Change, error) { return m.Clear(cmd.Context(), name) })
			if err != nil {
				return err
			}
			c.done(ch, fmt.Sprintf("removed %d dead letters of %s", ch.Letters, name))
			return nil
		}
		r, err := queues.Rejected(c.storage, name, limit)
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
		SuggestFor: []string{"letters"}, Use: "rejected NAME [clear]",
		Short: "Show the samples that a target's receiver refused",
		Long:  "rejected prints the dead letters of a target: the samples that its receiver refused, and why. With clear it deletes them.",
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
	f.IntVar(&limit, "limit", 50, "show the newest `n` samples; 0 for all")
	f.BoolVar(&empty, "clear", false, "delete them; the same as the word clear")
	return cmd
}

func samples(n uint64) string {
	if n == 1 {
		return "1 sample"
	}
	return fmt.Sprintf("%d samples", n)
}

const timeHelp = `A time is "now", an age (90m, 26h, 3d), or a date: 2026-11-20T06:00:00Z, or "2026-11-20 06:00" in this host's time zone.`

// parseTime parses a time in the forms of timeHelp.
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
	return time.Time{}, fmt.Errorf("invalid time %q: write now, an age (26h, 3d), or a date such as 2026-11-20T06:00:00Z", text)
}
