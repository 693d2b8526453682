package agent

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

	"hwsagent/agent/check"
	"hwsagent/agent/config"
	"hwsagent/agent/control"
	"hwsagent/agent/queues"
	"hwsagent/internal/version"
)

// BugReportOptions select what a report covers.
type BugReportOptions struct {
	ConfigFile  string
	StoragePath string
	Env         func(string) (string, bool) // looks up ${VAR} in the configuration; nil: os.LookupEnv
}

// ReportFile is one file of a report.
type ReportFile struct {
	Name string `json:"name"`
	Size int    `json:"size"` // bytes
	What string `json:"what"`

	text []byte
}

// maxReportFile bounds a file of a report, in bytes; the rest is cut off.
const maxReportFile = 16 << 20

// BugReport collects the facts that somebody who knows the program needs to understand a fault: no samples, no secrets.
// Where a part cannot be collected, the report has the reason in its place. It does not read the log, so that a report
// takes a few seconds even beside a full one.
func BugReport(ctx context.Context, o BugReportOptions) []ReportFile {
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	var files []ReportFile
	add := func(name, what string, text []byte, err error) {
		if err != nil {
			text = append(text, "\ncould not be collected: "+err.Error()+"\n"...)
		}
		if len(text) > maxReportFile {
			text = append(text[:maxReportFile:maxReportFile], "\n… cut off\n"...)
		}
		files = append(files, ReportFile{Name: name, Size: len(text), What: what, text: text})
	}
	asJSON := func(v any) []byte {
		b, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return []byte(err.Error())
		}
		return append(b, '\n')
	}

	add("version.json", "the program", asJSON(version.Build()), nil)
	add("system.txt", "the operating system", []byte(systemFacts()), nil)
	add("config.yaml", "the configuration with defaults, without secrets; or its mistakes", config.Describe(o.ConfigFile, o.Env), nil)
	report, err := Check(ctx, check.Options{ConfigFile: o.ConfigFile, StoragePath: o.StoragePath, Level: check.NoNetwork, Env: o.Env})
	var text bytes.Buffer
	err = errors.Join(err, report.WriteText(&text))
	add("check.txt", "hwsagent check --no-network", text.Bytes(), err)

	status, err := queues.FetchStatus(ctx, o.StoragePath)
	add("status.json", "hwsagent status --json", asJSON(status), err)
	list, err := FetchEvents(ctx, o.StoragePath)
	add("events.json", "hwsagent events --json: the last 24 hours", asJSON(list), err)
	for _, page := range []struct{ name, path, what string }{
		{"metrics.txt", "/metrics", "the agent's own metrics"},
		{"targets.json", "/api/v1/targets", "the targets of scrape jobs"},
		{"goroutines.txt", "/control/goroutines", "the stacks of the agent's goroutines"},
		{"log.txt", "/control/log", "the last lines that the agent has logged, at most 256 KiB"},
	} {
		body, err := fetchPage(ctx, o.StoragePath, page.path)
		add(page.name, page.what, body, err)
	}
	return files
}

// fetchPage fetches a page from the running agent.
func fetchPage(ctx context.Context, storage, path string) ([]byte, error) {
	code, body, err := control.AskSoon(ctx, storage, http.MethodGet, path)
	switch {
	case err != nil:
		return nil, err
	case code != http.StatusOK:
		return nil, fmt.Errorf("the agent answers %d", code)
	}
	return body, nil
}

// systemFacts returns the relevant facts about the host: system names, memory and file systems.
func systemFacts() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%s, %d processors\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	for _, file := range []string{"/proc/version", "/etc/os-release", "/proc/meminfo", "/proc/loadavg", "/proc/pressure/io", "/proc/self/mountinfo"} {
		text, err := readHead(file)
		if err != nil {
			continue // not every system has all of them
		}
		fmt.Fprintf(&b, "\n==> %s\n%s\n", file, bytes.TrimSpace(text))
	}
	return b.String()
}

// readHead reads the first 64KiB of a file.
func readHead(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 64<<10))
}

// WriteBugReport writes the files as a tar archive, compressed with gzip.
func WriteBugReport(w io.Writer, files []ReportFile, now time.Time) error {
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	for _, f := range files {
		head := &tar.Header{Name: "hwsagent-bugreport/" + f.Name, Mode: 0o600, Size: int64(len(f.text)), ModTime: now}
		if err := t.WriteHeader(head); err != nil {
			return fmt.Errorf("write %s: %w", f.Name, err)
		}
		if _, err := t.Write(f.text); err != nil {
			return fmt.Errorf("write %s: %w", f.Name, err)
		}
	}
	if err := errors.Join(t.Close(), z.Close()); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
