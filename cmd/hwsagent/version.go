package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"hwsagent/agent"
)

func newVersionCommand(f *flags) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := agent.Build()
			if asJSON {
				if err := json.NewEncoder(f.stdout).Encode(b); err != nil {
					return failed("print the version", err)
				}
				return nil
			}
			fmt.Fprintf(f.stdout, "hwsagent %s (%s, %s) %s\n", b.Version, b.Go, b.Platform, b.Revision)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
