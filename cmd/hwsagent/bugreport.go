package main

import (
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"hwsagent/agent"
)

func (c *cli) bugreport() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "bugreport",
		Short: "Collect diagnostics in one file, without samples and secrets",
		Long: "bugreport writes a .tar.gz and prints its contents: the version, facts about the system, the configuration without\n" +
			"secrets, the output of check --no-network, status, events, metrics, scrape targets, the stacks of the agent's goroutines\n" +
			"and the last lines that it has logged. It does not read the samples on disk, and works without a running agent. The file\n" +
			"contains host names, addresses and labels: review it before you send it to anybody.",
		Example: "  hwsagent bugreport --output report.tar.gz",
		Args:    arguments(0, 0),
		RunE: c.command(func(cmd *cobra.Command, _ []string) error {
			now := time.Now()
			if output == "" {
				output = "hwsagent-bugreport-" + now.UTC().Format("20060102-150405") + ".tar.gz"
			}
			var files []agent.ReportFile
			c.slowly("collecting …", func() {
				files = agent.BugReport(cmd.Context(), agent.BugReportOptions{ConfigFile: c.config, StoragePath: c.storage})
			})
			f, err := os.OpenFile(output, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) // #nosec G304 -- the user names it
			if err != nil {
				return fmt.Errorf("write the report: %w", err)
			}
			if err := errors.Join(agent.WriteBugReport(f, files, now), f.Close()); err != nil {
				return err
			}
			if c.json {
				c.printJSON(map[string]any{"schema": 1, "file": output, "files": files})
				return nil
			}
			table := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
			for _, r := range files {
				fmt.Fprintf(table, "%s\t%d bytes\t%s\n", r.Name, r.Size, r.What)
			}
			if err := table.Flush(); err != nil {
				return err
			}
			fmt.Fprintf(c.stdout, "%s\n", output)
			return nil
		}),
	}
	cmd.Flags().StringVar(&output, "output", "", "write this `file`, which must not exist; by default a file in the current directory, named after the time")
	return cmd
}
