package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"hwsagent/agent/queues"
	"hwsagent/agent/status"

	"github.com/spf13/cobra"
)

func (c *cli) replay() *cobra.Command {
	o := queues.ReplayOptions{}
	var from, to string
	cmd := &cobra.Command{
		Use:   "replay --target NAME --from TIME",
		Short: "Send the samples of a time window to a target again",
		Long: "It sends the samples that the log still has: wal.retain sets how long the log\n" +
			"keeps delivered samples. It applies the external labels and write_relabel_configs of the target's entry. It stops if the\n" +
			"target does not accept requests, or nothing for two minutes. It works beside a running agent, and changes neither the\n" +
			"target's queue nor its account.\n\n" + timeHelp,
		Example: "  hwsagent wal replay --target mimir --from 26h --to 24h --dry-run\n" +
			"  hwsagent wal replay --target mimir --from 2026-11-20T06:00:00Z --to 2026-11-20T07:30:00Z --match '{job=\"host\"}'",
		Args: arguments(0, 0),
		RunE: c.command(func(cmd *cobra.Command, _ []string) error {
			now := time.Now()
			for _, t := range []struct {
				flag, text string
				at         *time.Time
			}{{"from", from, &o.From}, {"to", to, &o.To}} {
				var err error
				if *t.at, err = parseTime(t.text, now); err != nil {
					c.started = false
					return fmt.Errorf("--%s: %w", t.flag, err)
				}
			}
			c.started = false
			switch {
			case !o.From.Before(o.To):
				return fmt.Errorf("--from %s is not before --to %s: %s and %s", quote(from), quote(to), stamp(o.From), stamp(o.To))
			case o.Rate < 0:
				return fmt.Errorf("--rate %g is negative: write samples per second, or 0 for no limit", o.Rate)
			}
			c.started = true
			return c.runReplay(cmd, o)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&o.Target, "target", "", "send to the target with this `name`")
	f.StringVar(&from, "from", "", "send samples of this `time` and later")
	f.StringVar(&to, "to", "now", "send samples before this `time`")
	f.StringVar(&o.Match, "match", "", "send only series that match this `selector`, by the labels that the target gets")
	f.BoolVar(&o.DryRun, "dry-run", false, "count the samples, and send nothing")
	f.Float64Var(&o.Rate, "rate", 10_000, "send at most this many `samples` per second; 0 for no limit")
	f.Uint64Var(&o.After, "after", 0, "continue after this `commit`; a replay that ends early prints the number")
	complete(cmd, "target", c.targetNames)
	for _, name := range []string{"target", "from"} {
		_ = cmd.MarkFlagRequired(name) // the flag exists
	}
	return cmd
}

func (c *cli) runReplay(cmd *cobra.Command, o queues.ReplayOptions) error {
	logger, err := c.logger(c.stderr)
	if err != nil {
		return err
	}
	o.ConfigFile, o.Storage, o.Logger = c.config, c.storage, logger
	bar := &replayBar{out: c.stderr, now: time.Now, terminal: isTerminal(c.stderr), dryRun: o.DryRun}
	o.Progress = bar.show
	res, err := queues.Replay(cmd.Context(), o)
	bar.end()
	known := err == nil || errors.Is(err, queues.ErrReplayRefused) || errors.Is(err, queues.ErrReplayInterrupted)
	if !known {
		return err
	}
	nothing := errors.Is(err, queues.ErrReplayRefused) && res.Delivered == 0
	switch {
	case c.json:
		c.printJSON(res)
	case !nothing:
		writeReplay(c.stdout, res)
	}
	if err != nil && !c.json {
		c.whatNext(cmd, res, err)
	}
	if err != nil {
		return exited{exitCode(err)}
	}
	return nil
}

// whatNext prints why a replay ended early, and how to continue it.
func (c *cli) whatNext(cmd *cobra.Command, r queues.ReplayResult, err error) {
	fmt.Fprintf(c.stderr, "hwsagent: %v\n", err)
	if errors.Is(err, queues.ErrReplayRefused) && r.Delivered == 0 {
		fmt.Fprintln(c.stderr, "Nothing was stored. Try: hwsagent targets test "+quote(r.Target)+" tests each step of the connection. If all steps succeed, the receiver may refuse old samples:\n"+
			"    give it an out-of-order window for samples of this age (Prometheus: storage.tsdb.out_of_order_time_window), or write a later --from")
		return
	}
	again := []string{cmd.CommandPath(), "--target", quote(r.Target), "--from", stampExact(r.From), "--to", stampExact(r.To)}
	if r.Match != "" {
		again = append(again, "--match", quote(r.Match))
	}
	for _, name := range []string{"rate", "dry-run", "config.file", "storage.path"} {
		if f := cmd.Flag(name); f != nil && f.Changed {
			again = append(again, "--"+name+"="+quote(f.Value.String()))
		}
	}
	fmt.Fprintf(c.stderr, "Continue with: %s --after %d\n", strings.Join(again, " "), r.After)
}

// quote quotes a word for a shell.
func quote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func stampExact(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// writeReplay prints the result for people.
func writeReplay(w io.Writer, r queues.ReplayResult) {
	what := fmt.Sprintf("%s of %d series", samples(r.Samples), r.Series)
	if !r.Oldest.IsZero() {
		what += fmt.Sprintf(", from %s to %s", stamp(r.Oldest), stamp(r.Newest))
	}
	switch {
	case r.Samples == 0:
		fmt.Fprintln(w, "the log has no such samples; wal.retain sets how long it keeps delivered samples")
	case r.DryRun:
		fmt.Fprintf(w, "would send %s to %s, in %s\n", what, r.Target, requests(r.Requests, r.Bytes))
	default:
		fmt.Fprintf(w, "of %s: %d delivered to %s in %.1f s", what, r.Delivered, r.Target, r.Seconds)
		switch all := r.Refused + r.Unconfirmed; {
		case r.Unconfirmed == 0 && all > 0:
			fmt.Fprintf(w, ", %d refused", all)
		case r.Refused == 0 && all > 0:
			fmt.Fprintf(w, ", %d refused; the target may have them already", all)
		case all > 0:
			fmt.Fprintf(w, ", %d refused; the target may have %d of them already", all, r.Unconfirmed)
		}
		fmt.Fprintln(w, "\nthe target's account does not change: it counted these samples when they were appended")
	}
	if r.Unsupported > 0 {
		fmt.Fprintf(w, "%s cannot be sent: the protocol version or the settings of the target exclude them\n", samples(r.Unsupported))
	}
	if r.Filtered > 0 {
		fmt.Fprintf(w, "%s left out: write_relabel_configs dropped them, or they belong to another tenant\n", samples(r.Filtered))
	}
	for _, f := range r.Refusals {
		fmt.Fprintf(w, "    %d times %d %q, first of %s @ %s\n", f.Samples, f.Status, f.Text, f.Series, stamp(time.UnixMilli(f.Timestamp)))
	}
	if r.DamagedBytes > 0 || r.Gone > 0 {
		fmt.Fprintf(w, "%d bytes of the log are damaged and %d segments missing: their samples were not sent\n", r.DamagedBytes, r.Gone)
	}
}

// requests formats a number of requests and their total size.
func requests(n, bytes uint64) string {
	size := fmt.Sprintf("%d bytes", bytes)
	if bytes >= 10_000 {
		size = fmt.Sprintf("%d KB", bytes/1000)
	}
	if n == 1 {
		return "1 request of " + size
	}
	return fmt.Sprintf("%d requests of %s together", n, size)
}

// replayBar shows the progress of a replay: a bar on a terminal, else a line now and then.
type replayBar struct {
	out      io.Writer
	now      func() time.Time
	terminal bool
	dryRun   bool

	began, last time.Time
	shown       bool
}

func (b *replayBar) show(p queues.ReplayProgress) {
	const width = 24
	now := b.now()
	if b.began.IsZero() {
		b.began, b.last = now, now
	}
	every := 5 * time.Second
	if b.terminal {
		every = 200 * time.Millisecond
	}
	if now.Sub(b.last) < every || p.Total == 0 {
		return
	}
	b.last = now
	part := float64(p.Read) / float64(p.Total)
	n, verb := p.Delivered, "delivered"
	if b.dryRun {
		n, verb = p.Selected, "found"
	}
	took := now.Sub(b.began)
	text := fmt.Sprintf("%3.0f %% of the log read, %s %s, %.0f/s", 100*part, samples(n), verb, float64(n)/took.Seconds())
	if part > 0.01 {
		text += fmt.Sprintf(", about %s left", status.Span(time.Duration(float64(took)*(1-part)/part).Round(time.Second)))
	}
	if !b.terminal {
		fmt.Fprintln(b.out, strings.TrimSpace(text))
		return
	}
	full := min(int(part*width), width)
	fmt.Fprintf(b.out, "\r\x1b[K[%s%s] %s", strings.Repeat("#", full), strings.Repeat(".", width-full), text)
	b.shown = true
}

// end clears the bar.
func (b *replayBar) end() {
	if b.shown {
		fmt.Fprint(b.out, "\r\x1b[K")
	}
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}
