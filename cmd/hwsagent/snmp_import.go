package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"hwsagent/agent/config"
	"hwsagent/agent/hardware/snmptool"
)

func (c *cli) snmpImport() *cobra.Command {
	var profiles, librenms, mibs, to string
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Make hardware definitions from LibreNMS or profiles",
		Long: "import makes hardware definitions from LibreNMS, or from profiles of Datadog, Netdata or Kentik.\nimport reads your copy of another program's files, and writes hardware definitions to a directory, which you then list\n" +
			"under snmp_definitions. For each file it prints what it could not convert, and why. Imported definitions only fill gaps:\n" +
			"the built-in ones come first. Profiles have no units, so a reading is imported only if a MIB in --mibs gives its unit;\n" +
			"without --mibs only states are imported. LibreNMS has its own folder of MIBs.\n" +
			"A later import into the same directory replaces its files, and removes those that it no longer makes.",
		Example:           "  hwsagent snmp import --librenms /opt/librenms --to /etc/hwsagent/snmp-definitions.d\n  hwsagent snmp import --profiles /etc/datadog-agent/conf.d/snmp.d/default_profiles --mibs /usr/share/snmp/mibs --to snmp-definitions.d",
		Args:              arguments(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: c.command(func(*cobra.Command, []string) error {
			switch {
			case (profiles == "") == (librenms == ""):
				return fmt.Errorf("%w: write either --profiles or --librenms", config.ErrUsage)
			case librenms != "" && mibs != "":
				return fmt.Errorf("%w: --mibs goes with --profiles only: LibreNMS has its own folder of MIBs", config.ErrUsage)
			case to == "":
				return fmt.Errorf("%w: --to is missing: name the directory for the definitions", config.ErrUsage)
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
	cmd.Flags().StringVar(&profiles, "profiles", "", "a `directory` with profiles in the format of Datadog, Netdata and Kentik")
	cmd.Flags().StringVar(&librenms, "librenms", "", "the `directory` of LibreNMS, with its definitions and the folder mibs")
	cmd.Flags().StringVar(&mibs, "mibs", "", "a `directory` with MIBs, for units and names of values in profiles")
	cmd.Flags().StringVar(&to, "to", "", "the `directory` to write to; created if it does not exist")
	for _, name := range []string{"profiles", "librenms", "mibs", "to"} {
		_ = cmd.MarkFlagDirname(name) // the flag exists
	}
	return cmd
}
