package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"hwsagent/agent"
	"hwsagent/agent/tap"
)

func (c *cli) tap() *cobra.Command {
	var o agent.TapOptions
	var point string
	cmd := &cobra.Command{
		Use:   "tap",
		Short: "Follow samples past a point of the running agent: after its inputs, after a target's relabelling, or sent to a target",
		Long: "tap prints samples as they go past, until it is interrupted. The points are\n" +
			"  inputs      as an input has appended them (the usual one)\n" +
			"  relabelled  as a target will get them: with external labels and its write_relabel_configs\n" +
			"  sent        as a target has accepted them (the usual one with --target)\n" +
			"It never delays the agent: samples beyond --rate, or too fast for the reader, are counted instead of printed. --json\n" +
			"prints one value a line: time, of, labels and value, or missed.",
		Example: "  hwsagent tap --match 'node_load1'                              # does the agent collect it?\n" +
			"  hwsagent tap --input core-switch --limit 20\n" +
			"  hwsagent tap --target mimir --point relabelled --match '{job=\"host\"}'   # what do the rules make of it?\n" +
			"  hwsagent tap --target mimir --json                             # what did the target take?",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Point = tap.Point(point)
			switch {
			case point == "" && o.Target == "":
				o.Point = tap.Inputs
			case point == "":
				o.Point = tap.Sent
			}
			if (o.Point == tap.Inputs) != (o.Target == "") {
				return fmt.Errorf("name the target of the points relabelled and sent with --target, and none with inputs")
			}
			return c.command(func(cmd *cobra.Command, _ []string) error {
				lines := json.NewEncoder(c.stdout)
				return agent.Tap(cmd.Context(), c.storage, o, func(i tap.Item) error {
					if c.json {
						return lines.Encode(i)
					}
					return agent.WriteTapped(c.stdout, i)
				})
			})(cmd, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&point, "point", "", "where: inputs, relabelled or sent")
	f.StringVar(&o.Target, "target", "", "the `name` of the target that relabels, or that they are sent to")
	f.StringVar(&o.Input, "input", "", "only what this probe, scrape job or receiver brings, by `name`, or kind and name: \"probe host\"")
	f.StringVar(&o.Match, "match", "", "only series that match this `selector`, by the labels at the point")
	f.IntVar(&o.Rate, "rate", 1000, fmt.Sprintf("at most `n` samples a second, up to %d", tap.MaxRate))
	f.IntVar(&o.Limit, "limit", 0, "end after `n` samples; 0: go on")
	complete(cmd, "target", c.targetNames)
	complete(cmd, "input", c.probeNames)
	complete(cmd, "point", func(*cobra.Command) (words []string) {
		for _, p := range tap.Points() {
			words = append(words, string(p))
		}
		return words
	})
	return cmd
}
