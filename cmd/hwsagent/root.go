package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/prometheus/common/promslog"
	"github.com/spf13/cobra"
)

// flags are what every command takes, before or after its name.
type flags struct {
	config  string
	storage string
	level   *promslog.Level
	format  *promslog.Format

	stdout, stderr io.Writer
}

func newRoot(stdout, stderr io.Writer) *cobra.Command {
	f := &flags{level: promslog.NewLevel(), format: promslog.NewFormat(), stdout: stdout, stderr: stderr}
	root := &cobra.Command{
		Use:   "hwsagent",
		Short: "Collect hardware and host metrics, keep them on disk, push them to remote-write endpoints",
		Long: `hwsagent collects hardware and host metrics, keeps every sample in a log on disk, and
pushes from that log to Prometheus remote-write endpoints.

Exit codes: 0 ok, 1 failed at run time, 2 wrong command line, 3 wrong configuration,
4 a target failed, 5 a probe failed, 6 the log is damaged, 7 no agent is running.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(stdout)
	root.SetErr(stderr)
	p := root.PersistentFlags()
	p.StringVar(&f.config, "config.file", defaultConfig(), "configuration file")
	p.StringVar(&f.storage, "storage.path", defaultStorage(), "directory of the log, savepoints and dead letters")
	p.Var(levelFlag{f.level}, "log.level", "least severe level that is logged: "+strings.Join(promslog.LevelFlagOptions, ", "))
	p.Var(formatFlag{f.format}, "log.format", "format of the log: "+strings.Join(promslog.FormatFlagOptions, ", "))
	root.AddCommand(newRunCommand(f), newDemoCommand(f), newReloadCommand(f), newVersionCommand(f))
	return root
}

// logger logs to stderr as the flags say.
func (f *flags) logger() *slog.Logger {
	return promslog.New(&promslog.Config{Level: f.level, Format: f.format, Writer: f.stderr})
}

// defaultConfig is the first of $HWSAGENT_CONFIG, ./agent.yaml and the system's file
// that is there.
func defaultConfig() string {
	const system = "/etc/hwsagent/agent.yaml"
	if path := os.Getenv("HWSAGENT_CONFIG"); path != "" {
		return path
	}
	if _, err := os.Stat("agent.yaml"); err == nil {
		return "agent.yaml"
	}
	return system
}

// defaultStorage is where a service manager says that state belongs, or the system's
// place for it.
func defaultStorage() string {
	if dir, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":"); dir != "" {
		return dir
	}
	return filepath.FromSlash("/var/lib/hwsagent")
}

// levelFlag and formatFlag make promslog's values flags with a type that help can name.
type levelFlag struct{ *promslog.Level }

func (levelFlag) Type() string { return "level" }

type formatFlag struct{ *promslog.Format }

func (formatFlag) Type() string { return "format" }

// failed is an error at run time.
func failed(what string, err error) error {
	return &exitError{code: exitFailed, err: fmt.Errorf("%s: %w", what, err)}
}
