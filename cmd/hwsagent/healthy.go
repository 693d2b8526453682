package main

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"hwsagent/agent/control"
)

func (c *cli) healthy() *cobra.Command {
	return &cobra.Command{
		Use:   "healthy",
		Short: "Exit with 0 if the agent is running and answers",
		Long: "healthy asks the agent that runs on --storage.path for GET /-/healthy, through its control socket. It needs no page, shell\n" +
			"or curl, so a container's HEALTHCHECK can use it. An agent on a full or hanging disk, or with a target that is down, is healthy.\n" +
			"One that does not answer within 5 seconds is not.",
		Example: "  hwsagent healthy",
		Args:    arguments(0, 0),
		RunE: c.command(func(cmd *cobra.Command, _ []string) error {
			code, body, err := control.AskSoon(cmd.Context(), c.storage, http.MethodGet, "/-/healthy")
			if err != nil {
				return err
			}
			if code != http.StatusOK {
				return fmt.Errorf("the agent answers %d", code)
			}
			if c.json {
				c.printJSON(map[string]any{"schema": 1, "healthy": true})
				return nil
			}
			fmt.Fprintln(c.stdout, strings.TrimSpace(string(body)))
			return nil
		}),
	}
}
