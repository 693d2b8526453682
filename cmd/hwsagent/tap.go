package main

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"hwsagent/agent"
	"hwsagent/agent/follow"
)

func (c *cli) tap() *cobra.Command {
	var o agent.FollowOptions
	var point string
	cmd := &cobra.Command{
		Use:   "tap",
		Short: "Print samples of the running agent as they pass",
		Long: "tap prints samples as they pass a point of the running agent, until you interrupt it. The points are\n" +
			"  inputs      as an input appended them to the log (the default)\n" +
			"  relabelled  as a target will get them: with external labels and after its write_relabel_configs\n" +
			"  sent        as a target accepted them (the default with --target)\n" +
			"It never delays the agent: it counts the samples beyond --rate, and those that come too fast for the reader, instead of\n" +
			"printing them. --json prints one value per line: time, of, labels and value, or missed.",
		Example: "  hwsagent tap --match 'node_load1'                              # does the agent collect it?\n" +
			"  hwsagent tap --input core-switch --limit 20\n" +
			"  hwsagent tap --target mimir --point relabelled --match '{job=\"host\"}'   # what do the rules change?\n" +
			"  hwsagent tap --target mimir --json                             # what did the target accept?",
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Point = follow.Point(point)
			switch {
			case point == "" && o.Target == "":
				o.Point = follow.Inputs
			case point == "":
				o.Point = follow.Sent
			}
			if !slices.Contains(follow.Points(), o.Point) {
				return fmt.Errorf("unknown point %q: write inputs, relabelled or sent", point)
			}
			if (o.Point == follow.Inputs) != (o.Target == "") {
				return fmt.Errorf("the points relabelled and sent need --target; the point inputs must not have it")
			}
			return c.command(func(cmd *cobra.Command, _ []string) error {
				lines := json.NewEncoder(c.stdout)
				return agent.Follow(cmd.Context(), c.storage, o, func(i follow.Item) error {
					if c.json {
						return lines.Encode(i)
					}
					return agent.WriteFollowed(c.stdout, i)
				})
			})(cmd, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&point, "point", "", "inputs, relabelled or sent")
	f.StringVar(&o.Target, "target", "", "the `name` of the target, for relabelled and sent")
	f.StringVar(&o.Input, "input", "", "only the samples of this probe, scrape job or receiver, by `name`, or kind and name: \"probe host\"")
	f.StringVar(&o.Match, "match", "", "only series that match this `selector`, by the labels at the point")
	f.IntVar(&o.Rate, "rate", 1000, fmt.Sprintf("print at most `n` samples a second, up to %d", follow.MaxRate))
	f.IntVar(&o.Limit, "limit", 0, "end after `n` samples; 0 for no end")
	complete(cmd, "target", c.targetNames)
	complete(cmd, "input", c.probeNames)
	complete(cmd, "point", func(*cobra.Command) (words []string) {
		for _, p := range follow.Points() {
			words = append(words, string(p))
		}
		return words
	})
	return cmd
}
