package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"hwsagent/agent"
	"hwsagent/agent/inventory"
)

// probeWords describe the argument PROBE of inventory and record.
const probeWords = "PROBE is the name of a probe of the configuration. Without a configuration it is a type, host, smart, nvidia, nut or ipmi (of this machine), or an entry as it\n" +
	"would stand under probes: '{type: snmp, target: HOST, auth: {community_file: FILE}}'."

func (c *cli) inventory() *cobra.Command {
	var o agent.HardwareOptions
	var file string
	cmd := &cobra.Command{
		Use:   "inventory [PROBE]",
		Short: "Print the hardware as a tree: each component with its state and values",
		Long: "inventory reads the hardware once, of one probe or of all that the configuration has, and prints each component with its state and values, below the one\n" +
			"that it is in. " + probeWords + " With --recording it shows what the agent makes of a file of hwsagent record.\n\n" + exitCodes,
		Example: "  hwsagent inventory                 # all probes of the configuration that read hardware\n" +
			"  hwsagent inventory host\n" +
			"  hwsagent inventory '{type: redfish, target: 192.0.2.9, username: monitor, password_file: /etc/hwsagent/bmc}'\n" +
			"  hwsagent inventory --recording device.rec",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: c.completeProbe,
		RunE: c.command(func(cmd *cobra.Command, args []string) error {
			var err error
			if o.Logger, err = c.quietLogger(); err != nil {
				return err
			}
			o.ConfigFile, o.Probe = c.config, strings.Join(args, "")
			if file != "" && o.Probe != "" {
				return fmt.Errorf("%w: name a probe or --recording, not both", agent.ErrUsage)
			}
			var all []inventory.Inventory
			if file != "" {
				var one inventory.Inventory
				one, err = agent.InventoryOf(cmd.Context(), file, o)
				all = append(all, one)
			} else {
				all, err = agent.TakeInventory(cmd.Context(), o)
			}
			if err != nil && !errors.Is(err, agent.ErrProbe) {
				return err
			}
			return c.printInventories(all, err)
		}),
	}
	definitionsFlag(cmd, &o.Definitions)
	cmd.Flags().StringVar(&file, "recording", "", "read this `file` in place of the hardware: one of hwsagent record, or an SNMP recording in snmpsim's format")
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
	var o agent.HardwareOptions
	var keep []string
	cmd := &cobra.Command{
		Use:   "record PROBE FILE",
		Short: "Write all answers of the hardware to a probe to a file, without data that identifies its owner",
		Long: "record reads the hardware once and writes what it was asked and answered to a new file, from which hwsagent inventory --recording, and a test, can read it again.\n" +
			probeWords + "\nOver SNMP it walks the whole device and writes snmpsim's format (snmprec).\n" +
			"Left out: secrets, logins, programs and their parameters, tables of addresses. Replaced by others of the same form: names, contacts and places, serial numbers\n" +
			"and UUIDs, hardware and IP addresses, wherever they are recognised; --keep keeps some of them. Look through the file before you give it away.\n\n" + exitCodes,
		Example: "  hwsagent record host machine.rec\n" +
			"  hwsagent record '{type: snmp, target: 192.0.2.7, auth: {community_file: /etc/hwsagent/community}}' device.snmprec",
		Args: cobra.ExactArgs(2),
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
			done, err := agent.Record(cmd.Context(), o, args[1], keep)
			if err != nil {
				return err
			}
			if c.json {
				c.printJSON(done)
			} else {
				fmt.Fprintf(c.stdout, "%s: %d answers; %d left out; replaced: %s\nLook through it before you give it away; hwsagent inventory --recording shows what the agent makes of it\n",
					done.File, done.Answers, done.LeftOut, counts(done.Replaced))
			}
			switch {
			case done.Problem == "":
				return nil
			case c.json:
				return exited{exitProbe}
			}
			return fmt.Errorf("%w: the recording is not complete: %s", agent.ErrProbe, done.Problem)
		}),
	}
	cmd.Flags().StringSliceVar(&keep, "keep", nil, "`kinds` to keep: "+strings.Join(agent.RecordKinds(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("keep", cobra.FixedCompletions(agent.RecordKinds(), cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	return cmd
}

// moved returns a hidden command below snmp whose successor works for all probes; it names the successor.
func (c *cli) moved(name, arguments string) *cobra.Command {
	return &cobra.Command{
		Use:                name + " " + arguments,
		Short:              "Is hwsagent " + name + " now, for all probes",
		Hidden:             true,
		DisableFlagParsing: true, // accept any arguments
		ValidArgsFunction:  cobra.NoFileCompletions,
		RunE: c.command(func(_ *cobra.Command, args []string) error {
			target, rest := "HOST", strings.TrimPrefix(arguments, "HOST")
			if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
				target = args[0]
			}
			return fmt.Errorf("%w: hwsagent snmp %s is now hwsagent %s '{type: snmp, target: \"%s\"}'%s; what stood in --auth stands in the entry as auth: {…}", agent.ErrUsage, name, name, target, rest)
		}),
	}
}
