package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"hwsagent/agent"
)

func newRunCommand(f *flags) *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the agent",
		Long: `Run the agent until SIGTERM or SIGINT. SIGHUP loads the configuration again.
What is undelivered at the end stays on disk and is sent after the next start.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger := f.logger()
			a, err := agent.New(agent.Options{ConfigFile: f.config, StoragePath: f.storage, WebListen: listen, Logger: logger})
			if err != nil {
				return startError(err)
			}
			stop := reloadOnHangup(cmd.Context(), a)
			defer stop()
			if err := a.Run(cmd.Context()); err != nil {
				return &exitError{code: exitFailed, err: err}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&listen, "web.listen-address", "", "address of the page and the API (default: web.listen of the configuration)")
	return cmd
}

// startError tells a wrong configuration from everything else.
func startError(err error) error {
	if _, ok := errors.AsType[*agent.ConfigErrors](err); ok {
		return &exitError{code: exitConfig, err: err}
	}
	return &exitError{code: exitFailed, err: err}
}

// reloadOnHangup reloads at each SIGHUP until ctx ends. Reload logs its own errors.
func reloadOnHangup(ctx context.Context, a *agent.Agent) (stop func()) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangups:
				_ = a.Reload()
			}
		}
	}()
	return func() { signal.Stop(hangups) }
}
