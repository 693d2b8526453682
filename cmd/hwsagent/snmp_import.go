package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"hwsagent/agent"
	"hwsagent/agent/snmptool"
)

func (c *cli) snmpImport() *cobra.Command {
	var profiles, librenms, mibs, to string
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Make definitions of hardware from profiles of Datadog, Netdata or Kentik, or from LibreNMS",
		Long: "import reads files that you have of another program, and writes definitions of hardware to a directory that snmp_definitions names.\n" +
			"It prints, file by file, what could not be carried over and why. Imported definitions only fill gaps: built-in ones come first. Profiles have no\n" +
			"units: a reading is carried over if a MIB in --mibs gives its unit; without --mibs only states are. LibreNMS has a folder of MIBs of its own.\n" +
			"A later import to the same directory writes its files anew and removes those that it no longer makes.",
		Example:           "  hwsagent snmp import --librenms /opt/librenms --to /etc/hwsagent/snmp-definitions.d\n  hwsagent snmp import --profiles /etc/datadog-agent/conf.d/snmp.d/default_profiles --mibs /usr/share/snmp/mibs --to snmp-definitions.d",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: c.command(func(*cobra.Command, []string) error {
			switch {
			case (profiles == "") == (librenms == ""):
				return fmt.Errorf("%w: write either --profiles or --librenms", agent.ErrUsage)
			case librenms != "" && mibs != "":
				return fmt.Errorf("%w: --mibs goes with --profiles only: LibreNMS has a folder of MIBs of its own", agent.ErrUsage)
			case to == "":
				return fmt.Errorf("%w: --to is missing: name the directory for the definitions", agent.ErrUsage)
			}
			done, err := snmptool.Import(profiles, librenms, mibs, to)
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
	cmd.Flags().StringVar(&profiles, "profiles", "", "a `directory` with profiles of the dialect of Datadog, Netdata and Kentik")
	cmd.Flags().StringVar(&librenms, "librenms", "", "the `directory` of LibreNMS, with its definitions and the folder mibs")
	cmd.Flags().StringVar(&mibs, "mibs", "", "a `directory` with MIBs, for units and names of values in profiles")
	cmd.Flags().StringVar(&to, "to", "", "the `directory` to write to; it is made if it is not there")
	for _, name := range []string{"profiles", "librenms", "mibs", "to"} {
		_ = cmd.MarkFlagDirname(name) // the flag exists
	}
	return cmd
}
