package main

import (
	"context"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"hwsagent/agent"
	"hwsagent/agent/systemd"
	"hwsagent/internal/lastlines"
)

// recentLog bounds the log lines that are kept for hwsagent bugreport, in bytes.
const recentLog = 256 << 10

func (c *cli) run() *cobra.Command {
	return &cobra.Command{
		Use:   "run",
		Short: "Run the agent until SIGTERM or SIGINT",
		Long:  "run runs in the foreground and logs to standard error. SIGHUP reloads the configuration.",
		Example: "  hwsagent run --config.file agent.yaml --storage.path /var/lib/hwsagent\n" +
			"  hwsagent run --web.listen-address 127.0.0.1:9470 --log.format json",
		Args: arguments(0, 0),
		RunE: c.command(func(cmd *cobra.Command, _ []string) error {
			c.ends.Store(int64(agentEnds))
			boundMemory()
			defer releaseStart()()
			recent := lastlines.New(recentLog)
			logger, err := c.logger(io.MultiWriter(recent, c.stderr))
			if err != nil {
				return err
			}
			// Libraries use the standard log: net/http writes a line, with its content, for each unsolicited response.
			// That is for debugging.
			log.SetFlags(0)
			log.SetOutput(slog.NewLogLogger(logger.Handler(), slog.LevelDebug).Writer())
			manager := systemd.FromEnvironment(os.LookupEnv)
			manager.Status("Reading the log")
			a, err := agent.New(agent.Options{ConfigFile: c.config, StoragePath: c.storage, WebListen: c.listen, Logger: logger, Logged: recent.Bytes, Manager: manager})
			if err != nil {
				return err
			}
			stop := onHangup(cmd.Context(), a)
			defer stop()
			return a.Run(cmd.Context())
		}),
	}
}

// onHangup reloads at each SIGHUP until the returned function is called. The agent logs a failed reload and keeps it in
// its status.
func onHangup(ctx context.Context, a *agent.Agent) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP) // never sent on Windows
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-signals:
				_ = a.Reload() // the agent reports the error
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		cancel()
		<-done // a stopped agent answers at once, even if a reload hangs
	}
}
