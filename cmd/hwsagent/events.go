package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"hwsagent/agent"
)

func (c *cli) events() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "events",
		Short: "List the events of the last 24 hours",
		Long:  "events lists targets that were down, held and up again, losses, muted series, reloads, restarts and replaced credentials.",
		Example: "  hwsagent events          # works while the agent is down\n" +
			"  hwsagent events ack      # end the warnings about losses",
		Args: arguments(0, 0),
		RunE: c.command(func(cmd *cobra.Command, _ []string) error {
			list, err := agent.FetchEvents(cmd.Context(), c.storage)
			if err != nil && (c.json || len(list.Events) == 0) { // one JSON value: the error
				return err
			}
			if c.json {
				c.printJSON(list)
				return nil
			}
			return errors.Join(list.WriteText(c.stdout), err)
		}),
	}
	cmd.AddCommand(&cobra.Command{
		Use:     "ack",
		Short:   "Acknowledge all losses so far",
		Long:    "ack ends the warnings about losses. A later loss causes a new warning.",
		Example: "  hwsagent events ack      # after you have read hwsagent events",
		Args:    arguments(0, 0),
		RunE: c.command(func(cmd *cobra.Command, _ []string) error {
			ack, err := agent.AcknowledgeEvents(cmd.Context(), c.storage)
			if err != nil {
				return err
			}
			if c.json {
				c.printJSON(ack)
				return nil
			}
			line := "there is no loss to acknowledge"
			switch {
			case ack.Samples > 0:
				line = fmt.Sprintf("acknowledged: no more warnings about %s that did not arrive or were not confirmed", samples(ack.Samples))
			case ack.Losses > 0: // of an unknown number of samples
				line = "acknowledged: no more warnings about the losses so far"
			}
			_, err = fmt.Fprintln(c.stdout, line)
			return err
		}),
	})
	return cmd
}
