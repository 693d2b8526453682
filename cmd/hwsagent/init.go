package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"hwsagent/agent"
	"hwsagent/agent/check"
	"hwsagent/agent/status"
)

// first is a first configuration: this host's metrics to one target.
type first struct {
	file, url, name, tokenFile string
}

// initialize returns the command init.
func (c *cli) initialize() *cobra.Command {
	var f first
	cmd := &cobra.Command{
		Use:   "init --url URL",
		Short: "Write a first configuration, and check it",
		Long: "init writes a configuration that sends this host's metrics to the remote-write endpoint URL. It never replaces a file.\n" +
			"Then it checks the file and its target, as hwsagent check does. A file that fails the check of the target stays.\n\n" + status.ExitCodes(),
		Example: "  hwsagent init --url http://prometheus.example:9090/api/v1/write\n" +
			"  hwsagent init --url https://mimir.example/api/v1/push --bearer-token-file /etc/hwsagent/mimir.token --file my-agent.yaml",
		Args: arguments(0, 0),
		RunE: c.command(func(cmd *cobra.Command, _ []string) error {
			if f.name == "" {
				f.name = "target"
				if u, err := url.Parse(f.url); err == nil && u.Hostname() != "" {
					f.name = u.Hostname()
				}
			}
			return c.writeFirst(cmd.Context(), f)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.url, "url", "", "the `URL` of the remote-write endpoint")
	flags.StringVar(&f.tokenFile, "bearer-token-file", "", "the `file` with the bearer token of the target")
	flags.StringVar(&f.name, "name", "", "the target's `name` in logs, metrics and on the page; by default the host of the URL")
	flags.StringVar(&f.file, "file", "agent.yaml", "write this `file`")
	_ = cmd.MarkFlagRequired("url") // an error means that there is no such flag
	return cmd
}

// text returns the configuration. All values are quoted: they cannot change its structure, and "${" stays as written.
func (f first) text() string {
	quote := func(s string) string { return strconv.Quote(strings.ReplaceAll(s, "${", "$${")) }
	var b strings.Builder
	fmt.Fprintf(&b, "# A first configuration. docs/configuration.md explains the file; hwsagent check checks it.\n"+
		"probes:\n"+
		"  - {name: host, type: host}   # this machine: CPU, memory, disks, network, temperatures, fans, power\n\n"+
		"remote_write:\n"+
		"  - name: %s\n"+
		"    url: %s\n", quote(f.name), quote(f.url))
	if f.tokenFile != "" {
		fmt.Fprintf(&b, "    bearer_token_file: %s\n", quote(f.tokenFile))
	}
	return b.String()
}

// write makes the file, which must not exist.
func (f first) write() error {
	out, err := os.OpenFile(f.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // #nosec G304 -- the user names it
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists, and init never replaces a file: give another name with --file, or add the target to its remote_write", f.file)
	}
	if err != nil {
		return err
	}
	_, err = out.WriteString(f.text())
	if err = errors.Join(err, out.Close()); err != nil {
		return errors.Join(err, os.Remove(f.file))
	}
	return nil
}

// writeFirst writes the file and checks it. A file with a mistake in it is removed again.
func (c *cli) writeFirst(ctx context.Context, f first) error {
	if err := f.write(); err != nil {
		return err
	}
	r, err := agent.Check(ctx, check.Options{ConfigFile: f.file, StoragePath: c.storage, Level: check.Live, Targets: []string{f.name}})
	wrong := r.Failed(check.GroupConfig)
	if err != nil || wrong {
		err = errors.Join(err, os.Remove(f.file))
	}
	if err != nil {
		return err
	}
	if c.json {
		c.printJSON(map[string]any{"schema": 1, "file": f.file, "written": !wrong, "check": r})
	} else {
		for _, g := range r.Groups {
			err = errors.Join(err, g.WriteText(c.stdout))
		}
		if err != nil {
			return err
		}
	}
	switch {
	case wrong && !c.json:
		fmt.Fprintf(c.stdout, "\nwrote no file\n")
	case !c.json:
		c.nextSteps(f.file)
	}
	switch {
	case wrong || r.Failed(check.GroupFiles):
		return exited{status.ExitConfig}
	case r.Failed(check.GroupTarget):
		return exited{status.ExitTarget}
	}
	return nil
}

// nextSteps prints the commands that follow, each as it is to be typed. A user who may not write to the usual directory gets
// one beside the file.
func (c *cli) nextSteps(file string) {
	storage := c.storage
	if storage == usualStorage && os.Geteuid() != 0 {
		storage = filepath.Join(filepath.Dir(file), "hwsagent-data")
	}
	program, config, at := quote(cmp.Or(c.program, "hwsagent")), " --config.file "+quote(file), " --storage.path "+quote(storage)
	fmt.Fprintf(c.stdout, "\nwrote %s\nTry:\n"+
		"    %[2]s check%[3]s%[4]s\n"+
		"    %[2]s run%[3]s%[4]s\n"+
		"    %[2]s status%[4]s   # in another terminal\n", file, program, config, at)
}
