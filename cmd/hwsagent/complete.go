package main

import (
	"os"
	"slices"

	"github.com/spf13/cobra"

	"hwsagent/agent/config"
	"hwsagent/agent/queues"
)

// names returns the words that a shell may complete; the context of cmd bounds the search for them.
type names func(cmd *cobra.Command) []string

// targetNames returns the targets of the configuration file.
func (c *cli) targetNames(*cobra.Command) []string {
	targets, _ := config.Names(c.config, os.LookupEnv)
	return targets
}

// probeNames returns the probes of the configuration file.
func (c *cli) probeNames(*cobra.Command) []string {
	_, probes := config.Names(c.config, os.LookupEnv)
	return probes
}

// queueNames returns the targets that have a queue and no entry in the configuration.
func (c *cli) queueNames(cmd *cobra.Command) []string {
	configured := c.targetNames(cmd)
	var left []string
	s, _ := queues.FetchStatus(cmd.Context(), c.storage) // without an answer there are no completions
	for _, t := range s.Targets {
		if !slices.Contains(configured, t.Name) {
			left = append(left, t.Name)
		}
	}
	return left
}

func (c *cli) completeTarget(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return firstWord(cmd, args, c.targetNames)
}

func (c *cli) completeProbe(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return firstWord(cmd, args, c.probeNames)
}

func (c *cli) completeQueue(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return firstWord(cmd, args, c.queueNames)
}

// completeAdopt completes a queue's old name, and then the new name from the configuration.
func (c *cli) completeAdopt(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 1 {
		return c.targetNames(cmd), cobra.ShellCompDirectiveNoFileComp
	}
	return firstWord(cmd, args, c.queueNames)
}

func firstWord(cmd *cobra.Command, args []string, words names) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return words(cmd), cobra.ShellCompDirectiveNoFileComp
}

// complete makes a shell complete the value of a flag of cmd.
func complete(cmd *cobra.Command, flag string, words names) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return words(cmd), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // cmd has no such flag, or already has completions; any test that builds the commands finds this
	}
}

// completeFlags makes a shell complete the values of the flags that every command has.
func (c *cli) completeFlags(root *cobra.Command) {
	complete(root, "log.level", func(*cobra.Command) []string { return []string{"debug", "info", "warn", "error"} })
	complete(root, "log.format", func(*cobra.Command) []string { return []string{"logfmt", "json"} })
}
