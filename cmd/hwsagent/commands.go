package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"hwsagent/agent"
	"hwsagent/agent/check"
	"hwsagent/agent/demo"
	"hwsagent/agent/hardware"
	"hwsagent/agent/queues"
	"hwsagent/agent/status"
	"hwsagent/internal/version"
)

func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "hwsagent",
		Short: "Read hardware metrics and push them through a log on disk",
		Long: "hwsagent reads hardware and host metrics, writes every sample to a log on disk, and pushes from it to any number of\n" +
			"Prometheus remote-write targets. Collected samples arrive, even after a network outage or a crash of the agent.\n\n" + status.ExitCodes(),
		Example: "  hwsagent init --url http://prometheus.example:9090/api/v1/write   # writes agent.yaml\n" +
			"  hwsagent check --config.file agent.yaml     # does everything work?\n" +
			"  hwsagent run --config.file agent.yaml       # page: http://127.0.0.1:9464\n" +
			"  hwsagent status                             # does my data arrive?",
		SilenceErrors: true, SilenceUsage: true,
		Args: arguments(0, 0),
	}
	version := root.Flags().Bool("version", false, "print version, source revision and platform")
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if *version {
			return c.command(c.printVersion)(cmd, nil)
		}
		return cmd.Help()
	}
	f := root.PersistentFlags()
	f.StringVar(&c.config, "config.file", defaultConfig(), "the configuration `file`; by default $HWSAGENT_CONFIG, /etc/hwsagent/agent.yaml or ./agent.yaml")
	f.StringVar(&c.storage, "storage.path", defaultStorage(), "the `directory` of log, savepoints and control socket; without this flag it is the first one in $STATE_DIRECTORY, else /var/lib/hwsagent")
	f.StringVar(&c.listen, "web.listen-address", "", "`host:port` of the page; overrides web.listen of the configuration")
	f.StringVar(&c.logLevel, "log.level", "info", "debug, info, warn or error")
	f.StringVar(&c.logFormat, "log.format", "logfmt", "logfmt or json")
	f.BoolVar(&c.json, "json", false, "print one JSON value on stdout")
	root.AddCommand(c.run(), c.demo(), c.initialize(), c.check(), c.configuration(), c.probe(), c.inventory(), c.record(), c.status(), c.healthy(), c.events(), c.top(), c.tap(), c.targets(), c.reload(), c.snmp(), c.wal(), c.bugreport(), c.man(), c.version())
	c.completeFlags(root)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	usual := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if c.unknown = cmd.ValidateArgs(cmd.Flags().Args()); c.unknown != nil && cmd.HasSubCommands() {
			return
		}
		c.unknown = nil
		if cmd.HasParent() && cmd.Long != "" { // which does not repeat the short description
			fmt.Fprintf(cmd.OutOrStdout(), "%s.\n", cmd.Short)
		}
		usual(cmd, args)
	})
	return root
}

// flagError says which values a flag takes that got another one.
func flagError(err error) error {
	wrong, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	not := map[string]string{
		"bool": "neither true nor false", "float64": "not a number", "int": "not a whole number", "uint16": "not a whole number from 0 to 65535",
		"uint64": "not a whole number from 0 on", "duration": "not a time with its unit, such as 500ms or 5s",
	}[wrong.GetFlag().Value.Type()]
	if not == "" {
		return err
	}
	return fmt.Errorf("--%s: %q is %s", wrong.GetFlag().Name, wrong.GetValue(), not)
}

// usualStorage is the storage directory if neither a flag nor systemd names one.
const usualStorage = "/var/lib/hwsagent"

// defaultStorage returns the first directory of STATE_DIRECTORY, which systemd sets to all of a service's, separated by colons
// (systemd.exec(5)).
func defaultStorage() string {
	dirs := os.Getenv("STATE_DIRECTORY")
	if runtime.GOOS != "windows" {
		dirs, _, _ = strings.Cut(dirs, ":")
	}
	return cmp.Or(dirs, usualStorage)
}

// defaultConfig returns the first existing file in the usual places.
func defaultConfig() string {
	if f := os.Getenv("HWSAGENT_CONFIG"); f != "" {
		return f
	}
	const etc, here = "/etc/hwsagent/agent.yaml", "agent.yaml"
	if _, err := os.Stat(etc); err != nil {
		if _, err := os.Stat(here); err == nil {
			return here
		}
	}
	return etc
}

// command wraps a command's work and marks it as begun, so that its errors are not treated as wrong usage.
func (c *cli) command(work func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if _, err := c.logger(io.Discard); err != nil {
			return err
		}
		c.started = true
		return work(cmd, args)
	}
}

// logger returns a logger to w in the format and level of the flags.
func (c *cli) logger(w io.Writer) (*slog.Logger, error) {
	level, format := promslog.NewLevel(), promslog.NewFormat()
	if err := level.Set(c.logLevel); err != nil {
		return nil, fmt.Errorf("--log.level: unknown level %q: write debug, info, warn or error", c.logLevel)
	}
	if err := format.Set(c.logFormat); err != nil {
		return nil, fmt.Errorf("--log.format: unknown format %q: write logfmt or json", c.logFormat)
	}
	return promslog.New(&promslog.Config{Level: level, Format: format, Writer: w}), nil
}

func (c *cli) check() *cobra.Command {
	var syntaxOnly, noNetwork bool
	o := check.Options{Level: check.Live}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check configuration, files, targets, probes and scrape jobs",
		Long: "check prints a remedy for each failure, and each result as soon as it is known. It sends an empty write, which stores\n" +
			"nothing, to every target, runs every probe once, and scrapes the targets of every scrape job once, at most 50 of a job.\n" +
			"It uses the same code as run. With --target or --probe it checks only these and the files that they name.\n\n" + status.ExitCodes(),
		Example: "  hwsagent check --no-network --config.file new.yaml   # before a reload\n" +
			"  hwsagent check --target mimir                        # one target, and no probe\n" +
			"  hwsagent check --probe core-switch",
		Args: arguments(0, 0),
		RunE: c.command(func(cmd *cobra.Command, _ []string) error {
			switch {
			case syntaxOnly:
				o.Level = check.SyntaxOnly
			case noNetwork:
				o.Level = check.NoNetwork
			}
			o.ConfigFile, o.StoragePath = c.config, c.storage
			var failed error // to write
			if !c.json {
				o.Done = func(g check.Group) { failed = errors.Join(failed, g.WriteText(c.stdout)) }
				o.Waiting = func(names []string) { fmt.Fprintf(c.stderr, "waiting for %s …\n", strings.Join(names, ", ")) }
			}
			r, err := agent.Check(cmd.Context(), o)
			if err != nil {
				return err
			}
			if c.json {
				c.printJSON(r)
			} else if err := errors.Join(failed, r.WriteVerdict(c.stdout)); err != nil {
				return err
			}
			switch {
			case r.Failed(check.GroupConfig) || r.Failed(check.GroupFiles):
				return exited{status.ExitConfig}
			case r.Failed(check.GroupStorage):
				return exited{status.ExitFailed}
			case r.Failed(check.GroupTarget):
				return exited{status.ExitTarget}
			case r.Failed(check.GroupProbe) || r.Failed(check.GroupScrape):
				return exited{status.ExitAttention}
			}
			return nil
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&syntaxOnly, "syntax-only", false, "check only the configuration file; the files that it names need not exist")
	f.BoolVar(&noNetwork, "no-network", false, "check configuration, files, certificates and storage, but no target and no probe")
	f.StringSliceVar(&o.Targets, "target", nil, "check only the target with this `name`, and its files; may be given several times")
	f.StringSliceVar(&o.Probes, "probe", nil, "check only the probe with this `name`, and its files; may be given several times")
	cmd.MarkFlagsMutuallyExclusive("syntax-only", "no-network")
	complete(cmd, "target", c.targetNames)
	complete(cmd, "probe", c.probeNames)
	return cmd
}

func (c *cli) probe() *cobra.Command {
	return &cobra.Command{
		Use:   "probe NAME",
		Short: "Run one probe once and print its samples",
		Long:  "probe prints the samples in Prometheus' text format, and does not store them.",
		Example: "  hwsagent probe host --config.file agent.yaml\n" +
			"  hwsagent probe core-switch | grep ^hw_temperature",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("name one probe in the configuration: hwsagent probe NAME")
			}
			return nil
		},
		ValidArgsFunction: c.completeProbe,
		RunE: c.command(func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("log.level") {
				c.logLevel = "error" // the result already has the errors of the round
			}
			logger, err := c.logger(c.stderr)
			if err != nil {
				return err
			}
			out := c.stdout
			if c.json {
				out = io.Discard
			}
			r, err := hardware.ProbeOnce(cmd.Context(), c.config, args[0], out, logger)
			if c.json && r.Name != "" {
				c.printJSON(r)
				if err != nil {
					return exited{exitCode(err)}
				}
				return nil
			}
			if err == nil {
				fmt.Fprintf(c.stderr, "%s: %d samples in %.3g s\n", r.Name, r.Samples, r.Seconds)
				if r.Error != "" {
					fmt.Fprintf(c.stderr, "the probe could not read everything: %s\n", r.Error)
				}
			}
			return err
		}),
	}
}

func (c *cli) status() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show whether the data arrives, and why not",
		Long:  "status works while the agent is down. It shows the verdict, every target and input, and every problem with its remedy.\n\n" + status.ExitCodes(),
		Example: "  hwsagent status\n" +
			"  hwsagent status --json | jq .verdict.text              # for a script; the exit code shows whether all is well\n" +
			"  hwsagent status --storage.path /mnt/var/lib/hwsagent   # a disk from another machine",
		Args: arguments(0, 0),
		RunE: c.command(func(cmd *cobra.Command, _ []string) error {
			s, err := queues.FetchStatus(cmd.Context(), c.storage)
			if s.Schema == 0 {
				return err // nothing to show
			}
			if c.json {
				c.printJSON(s)
			} else if err := c.writeStatus(s); err != nil {
				return err
			}
			if err != nil {
				return exited{exitCode(err)}
			}
			if code := s.ExitCode(); code != status.ExitOK {
				return exited{code}
			}
			return nil
		}),
	}
}

// writeStatus prints a status: on a terminal within its width and, unless NO_COLOR is set, with colours.
func (c *cli) writeStatus(s status.Status) error {
	f, ok := c.stdout.(*os.File)
	if !ok || !isTerminal(f) {
		return status.WriteText(c.stdout, s)
	}
	columns, _, err := term.GetSize(int(f.Fd())) // #nosec G115 -- a descriptor
	if err != nil {
		return status.WriteText(c.stdout, s)
	}
	return status.WriteTerminal(f, s, columns, os.Getenv("NO_COLOR") == "")
}

func (c *cli) reload() *cobra.Command {
	var dryRun, warn bool
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Load the changed configuration, and print the changes",
		Long: "After a mistake in the file the running agent keeps the old configuration.\nreload prints each key that differs from the previous configuration: + added, - removed, ~ changed. It never prints\n" +
			"secrets. --dry-run prints the same and changes nothing.\n\n" +
			"Then reload checks the files that the configuration names, as check does. A file that cannot be used stops only the\n" +
			"target or probe that needs it. reload names it as a warning, and exits with 3, or with --warn-files with 0.\n\n" + status.ExitCodes(),
		Example: "  hwsagent reload --dry-run   # only print the changes\n" +
			"  hwsagent reload",
		Args: arguments(0, 0),
		RunE: c.command(func(cmd *cobra.Command, _ []string) error {
			r, err := agent.RequestReload(cmd.Context(), c.storage, dryRun)
			if err != nil {
				return err
			}
			if c.json {
				c.printJSON(r)
			} else if err := r.WriteText(c.stdout); err != nil {
				return err
			}
			if len(r.Files) == 0 {
				return nil
			}
			if !c.json {
				fmt.Fprintln(c.stderr, "warning: files that the configuration names cannot be used; targets and probes that do not need them are not affected")
				if err := r.WriteFiles(c.stderr); err != nil {
					return err
				}
			}
			if warn {
				return nil
			}
			return exited{status.ExitConfig}
		}),
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "change nothing")
	cmd.Flags().BoolVar(&warn, "warn-files", false, "exit with 0 although a file cannot be used, because the reload is done")
	return cmd
}

func (c *cli) wal() *cobra.Command {
	wal := &cobra.Command{
		Use: "wal", Short: "Inspect the log on disk, and send a part of it again",
		Example: "  hwsagent wal inspect\n" +
			"  hwsagent wal dump --series '{job=\"host\"}' --from 10m\n" +
			"  hwsagent wal replay --target mimir --from 26h --to 24h",
		Args: arguments(0, 0), RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	wal.AddCommand(c.inspect(), c.dump(), c.verify(), c.replay())
	return wal
}

// progress reports on stderr, every few seconds, how much of the log has been read.
func (c *cli) progress(now func() time.Time) func(read, total int64) {
	const every, mb = 2 * time.Second, 1e6
	last := now()
	return func(read, total int64) {
		if t := now(); t.Sub(last) >= every {
			last = t
			fmt.Fprintf(c.stderr, "read %.0f of %.0f MB\n", float64(read)/mb, float64(total)/mb)
		}
	}
}

func (c *cli) version() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print version, source revision and platform",
		Example: "  hwsagent version\n" +
			"  hwsagent version --json",
		Args: arguments(0, 0),
		RunE: c.command(c.printVersion),
	}
}

func (c *cli) printVersion(*cobra.Command, []string) error {
	b := version.Build()
	if c.json {
		c.printJSON(b)
		return nil
	}
	fmt.Fprintf(c.stdout, "hwsagent %s (%s, %s, %s)\n", b.Version, cmp.Or(b.Revision, "no revision"), b.Go, b.Platform)
	return nil
}

func (c *cli) demo() *cobra.Command {
	var o demo.Options
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show that an outage and a kill -9 lose nothing",
		Long:  "demo needs no configuration and ends by itself.",
		Example: "  hwsagent demo\n" +
			"  hwsagent demo --script crash --keep /tmp/demo   # only the crash; keeps its files",
		Args: arguments(0, 0),
		RunE: c.command(func(cmd *cobra.Command, _ []string) error {
			o.JSON, o.Listen, o.Stdout, o.Stderr = c.json, c.listen, c.stdout, c.stderr
			err := demo.Run(cmd.Context(), o)
			if errors.Is(err, demo.ErrLost) {
				return exited{status.ExitFailed} // the error is printed already
			}
			return err
		}),
	}
	f := cmd.Flags()
	f.StringVar(&o.Script, "script", "", "outage or crash; by default a tour of both")
	f.StringVar(&o.Keep, "keep", "", "use this `directory`, and keep it afterwards")
	return cmd
}
