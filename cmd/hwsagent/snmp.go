package main

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hwsagent/agent/config"
	"hwsagent/agent/hardware"
	"hwsagent/agent/hardware/snmptool"
	"hwsagent/agent/status"
)

// snmpFlags are the flags shared by the commands that query a device.
type snmpFlags struct {
	login   string
	timeout time.Duration
	retries int
}

func (f *snmpFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.login, "auth", "", "the `login`, as under auth: of a probe: '{community_file: FILE}'; by default version 2 with public")
	cmd.Flags().DurationVar(&f.timeout, "packet-timeout", 5*time.Second, "how long to wait for one answer")
	cmd.Flags().IntVar(&f.retries, "retries", 3, "how often to send a packet again if no answer comes")
	withoutFiles(cmd, "auth", "packet-timeout", "retries")
}

// withoutFiles keeps the shell from completing file names for flags.
func withoutFiles(cmd *cobra.Command, flags ...string) {
	for _, name := range flags {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions) // the flag exists
	}
}

// options returns the options of a command about one device.
func (c *cli) options(f *snmpFlags, target string) (snmptool.Options, error) {
	o := snmptool.Options{Target: target, Timeout: f.timeout, Retries: f.retries}
	if f.timeout <= 0 || f.retries < 0 || f.retries > 100 {
		return o, fmt.Errorf("%w: --packet-timeout must be more than 0, and --retries between 0 and 100", config.ErrUsage)
	}
	var err error
	if o.Auth, err = snmptool.Login(f.login); err != nil {
		return o, fmt.Errorf("%w: --auth: %w", config.ErrUsage, err)
	}
	o.Logger, err = c.quietLogger()
	return o, err
}

// quietLogger logs only errors, unless the command line asks for more: a command's result has its other findings.
func (c *cli) quietLogger() (*slog.Logger, error) {
	if c.logLevel == "info" {
		c.logLevel = "error"
	}
	return c.logger(c.stderr)
}

func (c *cli) snmp() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snmp",
		Short: "Walk and find SNMP devices, import definitions",
		Example: "  hwsagent snmp walk 192.0.2.7 --auth '{community_file: /etc/hwsagent/community}'\n" +
			"  hwsagent snmp discover 192.0.2.0/24",
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.snmpWalk(), c.snmpTest(), c.snmpDiscover(), c.snmpImport())
	return cmd
}

func (c *cli) snmpWalk() *cobra.Command {
	var f snmpFlags
	cmd := &cobra.Command{
		Use:               "walk HOST [ROOT]",
		Short:             "Print a device's objects below an OID",
		Long:              "walk prints the objects with the names that the built-in modules know.",
		Example:           "  hwsagent snmp walk 192.0.2.7 system\n  hwsagent snmp walk 192.0.2.7 ifTable\n  hwsagent snmp walk 192.0.2.7 1.3.6.1.4.1 --auth '{community_file: /etc/hwsagent/community}'",
		Args:              arguments(1, 2),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: c.command(func(cmd *cobra.Command, args []string) error {
			o, err := c.options(&f, args[0])
			if err != nil {
				return err
			}
			objects, err := snmptool.Walk(cmd.Context(), o, append(args, "1.3.6.1")[1])
			if errors.Is(err, snmptool.ErrName) {
				return fmt.Errorf("%w: %w", config.ErrUsage, err)
			}
			if c.json && len(objects) == 0 && err != nil {
				return asProbe(err) // the error is printed as the only JSON value
			}
			if c.json {
				c.printJSON(objects)
				if err != nil { // not on stdout, which already has its only value
					fmt.Fprintf(c.stderr, "hwsagent: %v\n", asProbe(err))
					return exited{status.ExitAttention}
				}
				return nil
			}
			for _, x := range objects {
				fmt.Fprintf(c.stdout, "%s = %s: %s\n", x.Name, x.Type, escapeLineEnds(x.Value))
			}
			return asProbe(err)
		}),
	}
	f.add(cmd)
	return cmd
}

// escapeLineEnds shows a value with its line ends as escapes.
func escapeLineEnds(s string) string { return strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(s) }

// asProbe gives an error about a device the exit code of a probe.
func asProbe(err error) error {
	if err == nil || errors.Is(err, config.ErrUsage) {
		return err
	}
	return fmt.Errorf("%w: %w", hardware.ErrProbe, err)
}

// counts formats numbers by name, in order.
func counts(m map[string]int) string {
	var parts []string
	for name, n := range m {
		parts = append(parts, fmt.Sprintf("%s %d", name, n))
	}
	slices.Sort(parts)
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

func (c *cli) snmpTest() *cobra.Command {
	var modules, definitions []string
	cmd := &cobra.Command{
		Use:     "test FILE",
		Short:   "Show which objects of a recording the modules read",
		Long:    "test also prints which objects no module reads, by vendor.",
		Example: "  hwsagent snmp test switch.snmprec",
		Args:    arguments(1, 1),
		RunE: c.command(func(cmd *cobra.Command, args []string) error {
			logger, err := c.quietLogger()
			if err != nil {
				return err
			}
			done, err := snmptool.Test(cmd.Context(), args[0], modules, definitions, logger)
			if err != nil {
				return err
			}
			if c.json {
				c.printJSON(done)
				return nil
			}
			return done.Write(c.stdout)
		}),
	}
	definitionsFlag(cmd, &definitions)
	cmd.Flags().StringSliceVar(&modules, "module", nil, "use only the module with this `name`; may be given several times")
	_ = cmd.RegisterFlagCompletionFunc("module", cobra.FixedCompletions(snmptool.Modules(), cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	return cmd
}

func (c *cli) snmpDiscover() *cobra.Command {
	var logins []string
	var s snmptool.Search
	cmd := &cobra.Command{
		Use:   "discover CIDR…",
		Short: "Find devices in address ranges, and print entries for them",
		Long: "discover queries each address with each --auth in turn until one gets an answer, and prints entries for probes. It tries\n" +
			"each login at most once per device and sends no packet twice, so that it locks no account; a lost packet may hide a device.",
		Example:           "  hwsagent snmp discover 192.0.2.0/24 --auth '{community_file: /etc/hwsagent/community}' --auth '{version: 3, username: ops, password_file: /etc/hwsagent/ops}'",
		Args:              arguments(1, math.MaxInt),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: c.command(func(cmd *cobra.Command, args []string) error {
			if s.Rate <= 0 || s.Rate > 10_000 || s.Port == 0 || s.Timeout <= 0 {
				return fmt.Errorf("%w: --rate must be between 0 and 10000, --port a port, and --packet-timeout more than 0", config.ErrUsage)
			}
			if len(logins) == 0 {
				logins = []string{""}
			}
			for _, text := range logins {
				login, err := snmptool.Login(text)
				if err != nil {
					return fmt.Errorf("%w: --auth: %w", config.ErrUsage, err)
				}
				s.Logins = append(s.Logins, login)
			}
			var err error
			if s.Logger, err = c.quietLogger(); err != nil {
				return err
			}
			s.Ranges = args
			if isTerminal(c.stderr) {
				shown := time.Time{}
				s.Progress = func(asked, all, found int) {
					if now := time.Now(); now.Sub(shown) > 200*time.Millisecond || asked == all {
						shown = now
						fmt.Fprintf(c.stderr, "\r%d of %d addresses queried, %d devices\x1b[K", asked, all, found)
					}
				}
				defer fmt.Fprintln(c.stderr)
			}
			found, err := snmptool.Discover(cmd.Context(), s)
			if err != nil && found.Asked == 0 {
				return fmt.Errorf("%w: %w", config.ErrUsage, err)
			}
			if c.json {
				c.printJSON(found)
				return err
			}
			return errors.Join(err, found.Write(c.stdout, s.Logins))
		}),
	}
	f := cmd.Flags()
	f.StringArrayVar(&logins, "auth", nil, "a `login` to try, as under auth: of a probe; may be given several times; by default version 2 with public")
	f.Float64Var(&s.Rate, "rate", 100, "at most this many requests per second, over all addresses")
	f.Uint16Var(&s.Port, "port", 161, "the UDP `port` of the devices")
	f.DurationVar(&s.Timeout, "packet-timeout", 2*time.Second, "how long to wait for one answer")
	withoutFiles(cmd, "auth", "rate", "port", "packet-timeout")
	return cmd
}

// definitionsFlag adds the flag for directories of definitions, like snmp_definitions in a configuration.
func definitionsFlag(cmd *cobra.Command, into *[]string) {
	cmd.Flags().StringSliceVar(into, "definitions", nil, "a `directory` of hardware definitions, as in snmp_definitions; may be given several times")
	_ = cmd.MarkFlagDirname("definitions") // the flag exists
}
