package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestExecAndTextfile: the agent runs a command, keeps Debian's node_exporter running and scrapes it, and
// reads the directory that node_exporter reads as well. All of it arrives, and of the directory both say
// the same. After a SIGKILL of the exporter it is started again.
func TestExecAndTextfile(t *testing.T) {
	exporter := needs(t, "prometheus-node-exporter")
	p := startPrometheus(t, "")
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "backup.prom"), "# TYPE backup_age_seconds gauge\nbackup_age_seconds{db=\"a\"} 17\n")
	writeFile(t, filepath.Join(dir, "torn.prom"), "good_before 1\ntorn")
	config := `
global: {scrape_interval: 1s}
probes:
  - {name: said, type: exec, command: [/bin/sh, -c, "echo 'said{by=\"a shell\"} 42'"]}
  - name: exporter
    type: exec
    command: ["` + exporter + `", "--web.listen-address=127.0.0.1:{{port}}", --collector.disable-defaults, --collector.loadavg, --collector.textfile, "--collector.textfile.directory=` + dir + `"]
    scrape_url: "http://127.0.0.1:{{port}}/metrics"
  - {name: files, type: textfile, directory: ` + dir + `}
remote_write:
` + entry("p", p.writeURL())
	a := startAgent(t, config)
	p.wait(time.Minute, `said{by="a shell", job="said"} == 42`)
	p.wait(time.Minute, `node_load1{job="exporter"}`)
	for _, same := range []string{`backup_age_seconds{db="a"}`, `node_textfile_mtime_seconds`, `node_textfile_scrape_error`} {
		// Both have exactly one such series, with one value.
		p.wait(time.Minute, fmt.Sprintf(`count(count by (job) (%[1]s)) == 2 and count(count_values("v", %[1]s)) == 1 and count(%[1]s) == 2`, same))
	}
	if r := p.query(`good_before`); len(r) > 0 {
		t.Errorf("half a file was taken: %v", r)
	}
	pid := exporterPid(t, exporter, a.cmd.Process.Pid)
	if pid == 0 {
		t.Fatal("the exporter is no child of the agent")
	}
	victim, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, func() string {
		if again := exporterPid(t, exporter, a.cmd.Process.Pid); again == 0 || again == pid {
			return "the exporter was not started again"
		}
		return ""
	})
	p.wait(time.Minute, `count_over_time((up{job="exporter"} == 0)[1h:1s]) > 0 and up{job="exporter"} == 1`)
	pid = exporterPid(t, exporter, a.cmd.Process.Pid)
	if took, code := a.terminate(10 * time.Second); code != 0 {
		t.Errorf("the agent ended with %d after %s", code, took)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
		t.Errorf("the exporter (pid %d) is still there", pid)
	}
}

// exporterPid returns the process of a program that is a child of parent, 0 if there is none.
func exporterPid(t *testing.T, program string, parent int) int {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended meanwhile
		}
		var pid, ppid int
		var state string
		_, rest, _ := strings.Cut(string(stat), ") ")
		if _, err := fmt.Sscan(rest, &state, &ppid); err != nil || ppid != parent || state == "Z" {
			continue
		}
		if _, err := fmt.Sscan(string(stat), &pid); err != nil {
			continue
		}
		if target, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && filepath.Base(target) == filepath.Base(program) {
			return pid
		}
	}
	return 0
}
