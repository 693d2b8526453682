package targets

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// RunHwsagent has the agent that $HWSAGENT_BINARY names scrape and send until opts.Timeout. It fits the suites of both versions;
// $HWSAGENT_REMOTE_WRITE has further lines of the entry, $HWSAGENT_SCRAPE_INTERVAL is how often the agent scrapes.
func RunHwsagent(opts TargetOptions) error {
	dir, err := os.MkdirTemp("", "hwsagent-conformance-")
	if err != nil {
		return err
	}
	if os.Getenv("DEBUG") == "" {
		defer os.RemoveAll(dir)
	}
	host := strings.TrimPrefix(opts.ScrapeTarget, "http://")
	config := fmt.Sprintf(`
global:
  scrape_interval: %s
  scrape_timeout: 1s
web:
  listen: ""
probes:
  - {name: hwsagent, type: self, enabled: false}
scrape_configs:
  - job_name: test
    scrape_protocols: [OpenMetricsText1.0.0, PrometheusText0.0.4]
    static_configs:
      - targets: ['%s']
remote_write:
  - url: '%s'
%s`, os.Getenv("HWSAGENT_SCRAPE_INTERVAL"), host, opts.ReceiveEndpoint, os.Getenv("HWSAGENT_REMOTE_WRITE"))
	file := filepath.Join(dir, "agent.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(os.Getenv("HWSAGENT_BINARY"), "run", "--config.file="+file, "--storage.path="+filepath.Join(dir, "data"))
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	time.AfterFunc(opts.Timeout, func() { cmd.Process.Signal(syscall.SIGINT) })
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%w: %s", err, text)
	}
	return err
}
