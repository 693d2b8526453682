package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"hwsagent/agent/config"
	"hwsagent/agent/hardware"
	"hwsagent/agent/hardware/inventory"
	"hwsagent/agent/status"
)

// probeWords describe the argument PROBE of inventory and record.
const probeWords = "PROBE is the name of a probe in the configuration. Two forms need no configuration file: a type (host, smart, raid, kernel, nvidia, nut,\n" +
	"or ipmi for this machine's BMC), and an entry as under probes: '{type: snmp, target: HOST, auth: {community_file: FILE}}'."

func (c *cli) inventory() *cobra.Command {
	var o hardware.Options
	var file string
	cmd := &cobra.Command{
		Use:   "inventory [PROBE]",
		Short: "Print the hardware as a tree of components",
		Long: "inventory reads the hardware of one probe, or of all probes in the configuration, once. It prints each component with its\n" +
			"state and values, below the component that contains it. With --recording it reads a file that hwsagent record wrote.\n" +
			probeWords + "\n\n" + status.ExitCodes(),
		Example: "  hwsagent inventory                 # all probes of the configuration that read hardware\n" +
			"  hwsagent inventory host\n" +
			"  hwsagent inventory '{type: redfish, target: 192.0.2.9, username: monitor, password_file: /etc/hwsagent/bmc}'\n" +
			"  hwsagent inventory --recording device.rec",
		Args:              arguments(0, 1),
		ValidArgsFunction: c.completeProbe,
		RunE: c.command(func(cmd *cobra.Command, args []string) error {
			var err error
			if o.Logger, err = c.quietLogger(); err != nil {
				return err
			}
			o.ConfigFile, o.Probe = c.config, strings.Join(args, "")
			if file != "" && o.Probe != "" {
				return fmt.Errorf("%w: name a probe or --recording, not both", config.ErrUsage)
			}
			var all []inventory.Inventory
			if file != "" {
				var one inventory.Inventory
				one, err = hardware.InventoryOf(cmd.Context(), file, o)
				all = append(all, one)
			} else {
				all, err = hardware.TakeInventory(cmd.Context(), o)
			}
			if err != nil && !errors.Is(err, hardware.ErrProbe) {
				return err
			}
			return c.printInventories(all, err)
		}),
	}
	definitionsFlag(cmd, &o.Definitions)
	cmd.Flags().StringVar(&file, "recording", "", "read this `file` instead of the hardware: a recording by hwsagent record, or of SNMP in snmpsim's format")
	return cmd
}

// printInventories prints the inventories, even if they only say why there is no hardware.
func (c *cli) printInventories(all []inventory.Inventory, err error) error {
	if c.json {
		c.printJSON(map[string]any{"schema": 1, "inventories": all})
	}
	for i := range all {
		if c.json {
			break
		}
		if i > 0 {
			fmt.Fprintln(c.stdout)
		}
		if err := all[i].Write(c.stdout); err != nil {
			return err
		}
	}
	if err != nil {
		return exited{exitCode(err)}
	}
	return nil
}

func (c *cli) record() *cobra.Command {
	var o hardware.Options
	var keep []string
	cmd := &cobra.Command{
		Use:   "record PROBE FILE",
		Short: "Record the hardware's answers to a probe in a file",
		Long: "record reads the hardware once and writes the probe's questions and the answers to a new file, which hwsagent inventory\n" +
			"--recording can read. An SNMP device is walked completely, and the file is in snmpsim's format (snmprec).\n" +
			probeWords + "\n" +
			"The recording leaves out secrets, logins, programs with their parameters, and tables of addresses. It replaces names,\n" +
			"contacts, locations, serial numbers, UUIDs, hardware addresses and IP addresses by others of the same form, where it\n" +
			"recognises them; --keep keeps some kinds. Review the file before you give it away.\n\n" + status.ExitCodes(),
		Example: "  hwsagent record host machine.rec\n" +
			"  hwsagent record '{type: snmp, target: 192.0.2.7, auth: {community_file: /etc/hwsagent/community}}' device.snmprec",
		Args: arguments(2, 2),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return c.completeProbe(cmd, args, word)
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: c.command(func(cmd *cobra.Command, args []string) error {
			var err error
			if o.Logger, err = c.quietLogger(); err != nil {
				return err
			}
			o.ConfigFile, o.Probe = c.config, args[0]
			done, err := hardware.Record(cmd.Context(), o, args[1], keep)
			if err != nil {
				return err
			}
			if c.json {
				c.printJSON(done)
			} else {
				fmt.Fprintf(c.stdout, "%s: %d answers; %d left out; replaced: %s\nReview it before you give it away. hwsagent inventory --recording prints its components\n",
					done.File, done.Answers, done.LeftOut, counts(done.Replaced))
			}
			switch {
			case done.Problem == "":
				return nil
			case c.json:
				return exited{status.ExitAttention}
			}
			return fmt.Errorf("%w: the recording is not complete: %s", hardware.ErrProbe, done.Problem)
		}),
	}
	cmd.Flags().StringSliceVar(&keep, "keep", nil, "`kinds` to keep: "+strings.Join(hardware.RecordKinds(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("keep", cobra.FixedCompletions(hardware.RecordKinds(), cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	return cmd
}
