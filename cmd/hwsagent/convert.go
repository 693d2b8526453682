package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"hwsagent/agent/config"
	"hwsagent/agent/convert"
)

// maxConvert bounds how many bytes of the file are read: one more than the largest file allowed.
const maxConvert = 1<<20 + 1

// configuration returns the group of commands about configurations.
func (c *cli) configuration() *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: "Convert a configuration, or print the JSON schema",
		Example: "  hwsagent config convert prometheus.yml >agent.yaml\n" +
			"  hwsagent config schema >agent.schema.json",
		Args: arguments(0, 0), RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.convert(), c.schema())
	return cmd
}

func (c *cli) schema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON schema of agent.yaml, for editors",
		Long: "schema prints the JSON schema (draft 2020-12) of this version's configuration files. An editor with a language server\n" +
			"for YAML uses it if agent.yaml begins with this line:\n" +
			"# yaml-language-server: $schema=agent.schema.json",
		Example: "  hwsagent config schema >agent.schema.json",
		Args:    arguments(0, 0),
		RunE: c.command(func(*cobra.Command, []string) error {
			text, err := config.Schema()
			if err != nil {
				return err
			}
			_, err = c.stdout.Write(text)
			return err
		}),
	}
}

func (c *cli) convert() *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use:   "convert FILE",
		Short: "Convert another program's configuration to agent.yaml",
		Long: "convert reads FILE (- for standard input) and prints an agent.yaml. A comment at its top, and standard error, list each\n" +
			"setting that was not converted or behaves differently, with its line. Check the result with hwsagent check.\n" +
			"The formats are prometheus, vmagent (-promscrape.config), grafana-agent (static mode), otelcol (OpenTelemetry\n" +
			"Collector), alloy (Grafana Alloy), telegraf, and hws (Hardware Sentry's hws-config.yaml, MetricsHub's metricshub.yaml).\n" +
			"convert detects the format from FILE, but not vmagent, which has the same keys as prometheus.\n" +
			"For vmagent you may write its command-line flags after -- instead of FILE; convert then also reads the file that\n" +
			"-promscrape.config names.",
		Example: "  hwsagent config convert prometheus.yml >agent.yaml\n" +
			"  hwsagent config convert --from vmagent -- -remoteWrite.url=http://vm:8428/api/v1/write -promscrape.config=scrape.yml",
		Args: func(cmd *cobra.Command, args []string) error {
			if err := convert.Known(from); err != nil { // before the file is read
				return err
			}
			if from == "vmagent" && cmd.ArgsLenAtDash() == 0 && len(args) > 0 {
				return nil
			}
			return arguments(1, 1)(cmd, args)
		},
		RunE: c.command(func(cmd *cobra.Command, args []string) error {
			read := func(name string) ([]byte, error) { return readInput(cmd.InOrStdin(), name) }
			r, err := converted(from, args, cmd.ArgsLenAtDash() == 0, read)
			if err != nil {
				return err
			}
			if c.json {
				c.printJSON(r)
				return nil
			}
			if _, err := io.WriteString(c.stdout, r.Config); err != nil {
				return err
			}
			for _, n := range r.Notes {
				fmt.Fprintln(c.stderr, n)
			}
			return nil
		}),
	}
	cmd.Flags().StringVar(&from, "from", "", "the `format` of FILE: "+strings.Join(convert.Formats(), ", ")+"; by default detected from FILE")
	return cmd
}

// converted converts a file, or the flags of a vmagent.
func converted(from string, args []string, flags bool, read func(string) ([]byte, error)) (convert.Result, error) {
	if flags && from == "vmagent" && args[0] != "-" && strings.HasPrefix(args[0], "-") {
		return convert.Flags(args, read)
	}
	text, err := read(args[0])
	if err != nil {
		return convert.Result{}, fmt.Errorf("cannot read the file to convert: %w", err)
	}
	return convert.Convert(from, args[0], text)
}

// readInput reads a file, or in for "-".
func readInput(in io.Reader, name string) ([]byte, error) {
	if name != "-" {
		f, err := os.Open(name) // #nosec G304 -- the user names it
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	return io.ReadAll(io.LimitReader(in, maxConvert))
}
