package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hwsagent/agent/control"
)

// healthyWithin bounds the question to the running agent.
const healthyWithin = 5 * time.Second

func (c *cli) healthy() *cobra.Command {
	return &cobra.Command{
		Use:   "healthy",
		Short: "Exit with 0 if the agent is running and answers",
		Long: "healthy asks the agent that runs on --storage.path for GET /-/healthy, through its control socket. It needs no page, shell\n" +
			"or curl, so a container's HEALTHCHECK can use it. A full or hanging disk, or a target that is down, is not unhealthy.",
		Example: "  hwsagent healthy",
		Args:    cobra.NoArgs,
		RunE: c.command(func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), healthyWithin)
			defer cancel()
			code, body, err := control.AskSoon(ctx, c.storage, http.MethodGet, "/-/healthy")
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
